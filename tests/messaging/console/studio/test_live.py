"""The rendering beside the editor: what REST would render, of a text that is not saved."""

import pytest
from django.test import Client

from messaging.console.studio.live import RENDERING_POLICY
from messaging.models import TemplateVersion
from rme.tenants.models import Membership
from tests import factories
from tests.messaging.console.conftest import url
from tests.messaging.console.studio.scene import client_of, form

pytestmark = pytest.mark.django_db


def rendered(client, row, **fields):
    return client.post(url("template_preview", row.template.name), form(row, **fields)).json()


def test_an_unsaved_text_is_rendered_as_rest_renders_a_version(ann, api, org, row):
    ada = factories.contact(org)
    texts = {"subject": "Hi {{ contact.first_name }}", "html": "<b>{{ note }}</b>", "text": ""}
    found = rendered(ann, row, **texts, contact=ada.pk, **{"s:/note": "<one>"})
    TemplateVersion.objects.filter(pk=row.pk).update(**texts, state="DRAFT")
    body = {"version": 1, "contactId": str(ada.pk), "variables": {"note": "<one>"}}
    theirs = api.call("POST", "/templates/order/render", body).json()
    names = ("subject", "text", "missing", "warnings")
    assert {name: found[name] for name in names} == {name: theirs[name] for name in names}
    assert (found["subject"], found["text"], found["html"]) == ("Hi Ada", "<one>\n", True)
    assert TemplateVersion.objects.filter(template__name="order").count() == 1


def test_problems_stand_at_their_place(ann, row):
    found = rendered(ann, row, html="<p>\n  {{ note | nonsense }}</p>", subject="{% if %}")
    assert [(each["field"], each["line"]) for each in found["problems"]] == [
        ("subject", 1), ("html", 2),
    ]  # fmt: skip
    assert "fields" not in found


def test_plain_schema_values_and_variables_of_the_text_have_fields(ann, row):
    TemplateVersion.objects.filter(pk=row.pk).update(
        variables={
            "properties": {
                "guest": {"type": "object", "properties": {"name": {"type": "string"}}},
                "items": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"price": {"type": "number"}}},
                },
                "vip": {"type": "boolean"},
                "size": {"enum": ["S", "M"]},
                "tags": {"type": "array", "items": {"type": "string"}},
            }
        }
    )
    html = "{{ guest.name }} {% for i in items %}{{ i.price }}{% endfor %} {{ vip }} {{ other }}"
    found = rendered(ann, row, html=html, text="")
    assert [(each["path"], each["kind"]) for each in found["fields"]] == [
        ("/other", "text"),
        ("/vip", "boolean"),
        ("/size", "choice"),
        ("/tags", "list"),
        ("/guest/name", "text"),
        ("/items/0/price", "number"),
    ]
    given = {"s:/guest/name": "Ben", "s:/items/0/price": "2.5", "s:/vip": "false", "s:/other": "x"}
    assert rendered(ann, row, html=html, text="", **given)["text"] == "Ben 2.5 false x\n"
    wrong = {"s:/items/0/price": "dear"}
    assert rendered(ann, row, html=html, text="", **wrong)["errors"] == [
        {"field": "samples", "message": "items 1.price: 'dear' is not a number"}
    ]


def test_sms_preview_shows_size_and_characters_forcing_ucs_2(ann, org):
    row = factories.template(org, "SMS", name="short")
    found = rendered(ann, row, text="Grüße – ç")
    assert (found["sms"]["encoding"], found["sms"]["segments"]) == ("UCS-2", 1)
    assert found["forced"] == ["–", "ç"]
    plain = rendered(ann, row, text="Note: {{ note }}", **{"s:/note": "Zürich €"})
    assert (plain["sms"]["encoding"], plain["sms"]["characters"]) == ("GSM-7", 14)


def test_a_push_shows_its_picture_and_data(ann, org):
    row = factories.template(org, "PUSH", name="poke")
    more = {"title": "Hi", "body": "B", "badge": "3", "image": "https://a.example/i.png"}
    found = rendered(ann, row, **more, rows="1", d0_name="k", d0_text="{{ contact.first_name }}")
    assert (found["title"], found["badge"], found["image"], found["data"]) == (
        "Hi", 3, "https://a.example/i.png", {"k": "Ada"},
    )  # fmt: skip
    assert rendered(ann, row, **{**more, "badge": "x"})["errors"][0]["field"] == "badge"


def test_frame_is_a_document_with_its_own_policy(ann, row):
    html = "<!doctype html><p>{{ note }}</p>"
    answer = ann.post(
        url("template_frame", "order"), form(row, html=html, form="dark", **{"s:/note": "<x>"})
    )
    assert answer["Content-Security-Policy"] == RENDERING_POLICY
    assert answer["X-Frame-Options"] == "SAMEORIGIN"
    assert answer.content.decode() == (
        '<!doctype html><base href="https://rendering.invalid/" target="_blank">'
        '<meta name="color-scheme" content="dark"><p>&lt;x&gt;</p>'
    )


def test_contact_and_sample_values_are_escaped_and_foreign_contacts_rejected(ann, org, row):
    who = factories.contact(org, first_name="<script>alert(1)</script>")
    html = "<b>{{ contact.first_name }}{{ note }}</b>"
    fields = {"contact": who.pk, "s:/note": '"><img src=x onerror=alert(2)>'}
    frame = ann.post(url("template_frame", "order"), form(row, html=html, **fields))
    assert "<b>&lt;script&gt;alert(1)&lt;/script&gt;&#34;&gt;&lt;img src=x" in (
        frame.content.decode()
    )
    other = factories.contact(factories.organization("other"), first_name="Grace")
    assert rendered(ann, row, contact=other.pk)["errors"][0]["message"] == (
        "This contact doesn't exist any more."
    )


def test_contacts_are_masked_for_roles_without_addresses(ann, org, row):
    ada = factories.contact(org)
    found = ann.get(url("sample_contacts") + "?q=lovelace").json()["contacts"]
    line = {"id": str(ada.pk), "name": "Ada Lovelace"}
    assert found == [{**line, "address": ada.email, "typed": ada.email}]
    dev = client_of(Client, org, "dev", Membership.Role.DEVELOPER)
    (shown,) = dev.get(url("sample_contacts") + "?q=lovelace").json()["contacts"]
    assert shown == {**line, "address": "a…@simulator.rme.test", "typed": str(ada.pk)}
    text = "{{ contact.email }} {{ contact.mobile }}"
    assert rendered(dev, row, text=text, contact=ada.pk)["text"] == ("a…@simulator.rme.test +12…00")
    editor = client_of(Client, org, "ed", Membership.Role.TEMPLATE_EDITOR)
    assert rendered(editor, row, contact=ada.pk)["errors"][0]["field"] == "contact"
    assert editor.get(url("sample_contacts") + "?q=lovelace").status_code == 404
    assert rendered(ann, row, contact="nobody")["errors"][0]["message"] == (
        "This contact doesn't exist any more."
    )


def test_sample_that_json_cannot_hold_is_refused(ann, row):
    TemplateVersion.objects.filter(pk=row.pk).update(
        variables={"type": "object", "properties": {"count": {"type": "integer"}}}
    )
    answer = rendered(ann, row, text="{{ count }}", **{"s:/count": "9" * 30})
    assert [each["field"] for each in answer["errors"]] == ["samples"]
