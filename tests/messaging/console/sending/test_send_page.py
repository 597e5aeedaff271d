"""Sending to one person by hand: nothing leaves before its preview and route were seen."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from django.test import Client

from messaging.content import templates
from messaging.models import Delivery, Message, Pause, Suppression, TemplateVersion
from messaging.store import encodings
from rme.tenants.models import Membership
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.messaging.console.studio.scene import client_of
from tests.rest import work
from tests.threads import during

pytestmark = pytest.mark.django_db
SCHEMA = {
    "type": "object",
    "properties": {
        "note": {"type": "string"},
        "count": {"type": "integer"},
        "paid": {"type": "boolean"},
        "size": {"enum": ["S", "M"]},
        "items": {"type": "array", "items": {"type": "string"}},
        "guest": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
    "required": ["note"],
}
VALUES = {
    "s:/note": "hello", "s:/count": "3", "s:/paid": "false", "s:/size": "M", "s:/items": "a\nb",
    "s:/guest/name": "Grace",
}  # fmt: skip


@pytest.fixture
def ann(org):
    return client_of(Client, org, "ann")


@pytest.fixture
def ada(org):
    return factories.contact(org, first_name="Ada", email="ada@person.example")


def post(client, template="EMAIL welcome", do="preview", **fields):
    return client.post(url("send"), {"template": template, "do": do, **fields})


def confirm(client, shown):
    """Press the button beside a preview."""
    hidden = dict(shown.context["typed"])
    return client.post(url("send"), {**hidden, "key": shown.context["key"], "do": "send"})


def test_own_text_is_previewed_then_sent(ann, org, ada):
    chosen = post(ann, "TEXT EMAIL", do="choose", recipient=ada.email)
    assert [each.name for each in chosen.context["form"].text_fields] == [
        "category", "subject", "text",
    ]  # fmt: skip
    fields = {"category": "TRANSACTIONAL", "subject": "Your seat", "text": "It is 12 B."}
    missing = post(ann, "TEXT EMAIL", recipient=ada.email, **{**fields, "text": " "})
    assert set(missing.context["form"].errors) == {"text"}
    shown = post(ann, "TEXT EMAIL", recipient=ada.email, **fields)
    content = shown.context["preview"].content
    assert (content.subject, content.text) == ("Your seat", "It is 12 B.")
    assert shown.context["category"] == "Transactional"
    assert not Message.objects.exists()
    assert confirm(ann, shown).status_code == 302
    work()
    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.address) == ("DELIVERED", "ada@person.example")
    stored = encodings.contents(org.pk, [delivery.message_id])[delivery.message_id]
    assert stored["content"] == {"subject": "Your seat", "text": "It is 12 B."}


def test_own_text_passes_the_gates_of_its_category(ann, org, ada):
    fields = {"category": "MARKETING", "text": "Half price today"}
    shown = post(ann, "TEXT SMS", recipient=ada.email, **fields)
    assert [each.name for each in shown.context["form"].text_fields] == ["category", "text"]
    assert "The recipient has not consented" in shown.content.decode()
    post(ann, "TEXT PUSH", recipient=ada.email, **fields)  # it isn't offered
    assert not Message.objects.exists()


def test_message_is_previewed_then_sent_once(ann, org, ada):
    version = templates.add_draft(
        TemplateVersion.objects.get(template__channel="EMAIL").template,
        {"subject": "Hi", "text": "{{ note }} {{ guest.name }}", "variables": SCHEMA},
    )
    templates.activate(version)
    shown = post(ann, recipient="Ada@Person.example", **VALUES)
    assert not Message.objects.exists()
    text = shown.content.decode()
    assert "hello Grace" in text
    assert f"Send to {ada.first_name} {ada.last_name} now" in text
    sent = confirm(ann, shown)
    message = Message.objects.get()
    assert sent["Location"] == url("message", message.pk)
    assert confirm(ann, shown)["Location"] == url("message", message.pk)  # pressed twice
    work()
    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.address) == ("DELIVERED", "ada@person.example")
    assert encodings.contents(org.pk, [message.pk])[message.pk]["variables"] == {
        "note": "hello", "count": 3, "paid": False, "size": "M", "items": ["a", "b"],
        "guest": {"name": "Grace"},
    }  # fmt: skip
    assert audited.summaries(action="SENT") == [("ann", "SENT", f"message {message.pk}")]


@pytest.mark.parametrize(
    ("recipient", "error"),
    [
        ("", "This field is required."),
        ("nobody@x.example", "No contact matches. Add the person under Contacts first."),
        ("00000000-0000-7000-8000-000000000000", "No contact matches."),
        ("twin@x.example", "Several contacts match. Choose one of them."),
        ("grace@x.example", "No contact matches."),  # of another organization
        ("a\0b", "Null characters are not allowed."),
    ],
)
def test_recipient_that_cannot_be_is_refused_at_its_field(ann, org, recipient, error):
    for email in ("twin@x.example", "twin@x.example"):
        factories.contact(org, email=email)
    factories.contact(factories.organization("other"), first_name="Grace", email="grace@x.example")
    for do in ("preview", "send"):
        shown = post(ann, recipient=recipient, do=do)
        assert shown.context["form"].errors["recipient"][0].startswith(error)
        assert shown.context["form"]["recipient"].value() == recipient
        assert b"Grace" not in shown.content
    assert not Message.objects.exists()


def test_variables_are_checked_at_their_fields(ann, org, ada):
    factories.template(org, name="order", variables=SCHEMA)
    wrong = {**VALUES, "s:/note": "", "s:/count": "x", "s:/paid": "maybe", "s:/size": "XL"}
    shown = post(ann, "EMAIL order", recipient=str(ada.pk), **wrong)
    assert set(shown.context["form"].errors) == {"s:/note", "s:/count", "s:/paid", "s:/size"}


def test_number_that_json_cannot_hold_is_refused(ann, org, ada):
    factories.template(org, name="order", variables=SCHEMA, html="<p>{{ count }}</p>")
    shown = post(ann, "EMAIL order", recipient=str(ada.pk), **{**VALUES, "s:/count": "9" * 30})
    assert shown.context["form"].errors["__all__"] == [f"count: '{'9' * 30}' is not a number"]


def test_version_that_was_not_previewed_is_shown_before_it_is_sent(ann, org, ada):
    first = factories.template(org, name="order", text="old {{ note }}")
    shown = post(ann, "EMAIL order", recipient=str(ada.pk), **{"s:/note": "hello"})
    templates.activate(templates.add_draft(first.template, {"subject": "Hi", "text": "new"}))
    again = confirm(ann, shown)
    assert not Message.objects.exists()
    assert "The template has changed since the preview." in again.content.decode()
    assert again.context["preview"].content.text == "new"
    confirm(ann, again)
    assert Message.objects.count() == 1


def test_person_who_was_not_previewed_is_shown_before_anything_is_sent(ann, org, ada):
    shown = post(ann, recipient=ada.email, **{"s:/note": "hello"})
    ada.email = "elsewhere@person.example"
    ada.save()
    grace = factories.contact(org, first_name="Grace", email="ada@person.example")
    again = confirm(ann, shown)
    assert not Message.objects.exists()
    assert "The recipient has changed since the preview." in again.content.decode()
    confirm(ann, again)
    work()
    assert Delivery.objects.get().contact_id == str(grace.pk)


def test_refusal_of_a_gate_is_shown_before_anything_is_sent(ann, org, ada):
    Suppression.objects.create(
        organization=org, channel="EMAIL", address=ada.email, reason="MANUAL"
    )
    shown = post(ann, recipient=str(ada.pk))
    assert "The recipient is on a suppression list." in shown.content.decode()
    assert shown.context["typed"] == []
    assert not Message.objects.exists()


def test_several_matches_are_offered_and_the_chosen_one_is_the_recipient(ann, org):
    twins = [factories.contact(org, first_name=name, email="twin@x.example") for name in ("A", "B")]
    shown = post(ann, do="choose", recipient="twin@x.example").content.decode()
    assert "Which contact?" in shown
    assert all(f'value="{each.pk}"' in shown for each in twins)
    chosen = post(ann, do="choose", recipient=str(twins[1].pk))
    assert chosen.context["person"].id == str(twins[1].pk)


def test_query_of_a_persons_page_names_the_recipient(ann, org, ada):
    shown = ann.get(f"{url('send')}?recipient={ada.pk}&template=SMS+welcome")
    assert shown.context["person"].id == str(ada.pk)
    assert (shown.context["variant"].name, shown.context["variant"].channel) == ("welcome", "SMS")
    assert shown.context["preview"] is None
    assert not Message.objects.exists()


def test_fields_begin_empty_so_that_no_sample_reaches_a_person(ann, org, ada):
    schema = {"type": "object", "properties": {"code": {"type": "string", "examples": ["A-17"]}}}
    factories.template(org, name="order", text="{{ code }} {{ note }}", variables=schema)
    shown = ann.get(f"{url('send')}?recipient={ada.pk}&template=EMAIL+order")
    fields = {each.label: each for each in shown.context["form"].variable_fields}
    assert set(fields) == {"code", "note"}
    assert [each.value() for each in fields.values()] == [None, None]
    assert 'placeholder="A-17"' in str(fields["code"])
    preview = post(ann, "EMAIL order", recipient=str(ada.pk), **{"s:/code": "B"})
    assert preview.context["preview"].empty == ["note"]


def test_language_is_the_persons(ann, org, ada):
    factories.template(org, name="welcome", language="de", text="Notiz: {{ note }}")
    ada.language = "de_CH"
    ada.save()
    shown = post(ann, recipient=str(ada.pk), **{"s:/note": "hallo"})
    assert shown.context["preview"].content.text == "Notiz: hallo"
    confirm(ann, shown)
    assert Message.objects.get().language == "de"


def test_drafts_and_templates_of_others_are_not_offered(ann, org):
    other = factories.organization("other")
    factories.template(other, name="theirs")
    draft = factories.template(org, name="draft")
    TemplateVersion.objects.filter(pk=draft.pk).update(state="DRAFT")
    shown = ann.get(url("send"))
    codes = [code for code, _ in shown.context["form"].fields["template"].choices if code]
    assert codes == ["EMAIL welcome", "PUSH welcome", "SMS welcome", "TEXT EMAIL", "TEXT SMS"]
    assert "template" in post(ann, "EMAIL draft").context["form"].errors
    assert not Message.objects.exists()


def test_route_is_shown_before_sending(ann, org, ada):
    Pause.objects.create(organization=org, channel="EMAIL", reason="maintenance")
    shown = post(ann, recipient=str(ada.pk))
    route = shown.context["preview"].route
    assert route.sentence.endswith("after a wait: sending is paused.")
    assert route.sentence in shown.content.decode()
    assert [line.name for line in route.lines] == ["simulator"]


def test_message_is_scheduled_in_the_organizations_zone(ann, org, ada):
    at = (datetime.now(UTC) + timedelta(days=2)).replace(second=0, microsecond=0)
    shown = post(ann, recipient=str(ada.pk), at=f"{at:%Y-%m-%dT%H:%M}")
    assert "Schedule for Ada Lovelace" in shown.content.decode()
    confirm(ann, shown)
    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.due_at) == ("SCHEDULED", at)


def test_html_is_shown_in_a_frame_with_a_policy_of_its_own(ann, org, ada):
    factories.template(org, name="order", html="<p>{{ note }}</p>")
    fields = {"template": "EMAIL order", "recipient": str(ada.pk), "s:/note": "hello"}
    framed = ann.post(url("send_frame"), fields)
    assert "<p>hello</p>" in framed.content.decode()
    assert "sandbox" in framed["Content-Security-Policy"]
    assert not Message.objects.exists()


def test_only_operators_of_the_organization_may_send(org, ada):
    for role in ("VIEWER", "TEMPLATE_EDITOR", "APPROVER"):
        browser = client_of(Client, org, role, Membership.Role(role))
        assert post(browser, recipient=str(ada.pk), do="send").status_code == 404
    other = client_of(Client, factories.organization("other"), "eve")
    assert post(other, recipient=str(ada.pk), do="send").status_code == 404
    assert not Message.objects.exists()


def test_somebody_new_becomes_a_contact_only_when_the_message_is_sent(ann, org):
    typed = {"recipient": "Reto Roth <reto@person.example>", "s:/note": "hello"}
    shown = post(ann, **typed)
    assert shown.context["preview"].address == "reto@person.example"
    assert "Send to Reto Roth now" in shown.content.decode()
    assert not org.contact_set.exists()
    assert ann.post(url("send_frame"), typed).status_code == 200
    assert not org.contact_set.exists()
    form = {**dict(shown.context["typed"]), "key": shown.context["key"], "do": "send"}
    for _ in range(2):  # a double click
        assert post(ann, **form).status_code == 302
    row = org.contact_set.get()
    assert (row.first_name, row.last_name, row.email) == ("Reto", "Roth", "reto@person.example")
    assert Delivery.objects.get().contact_id == str(row.pk)


def test_somebody_new_who_was_added_by_another_name_is_checked_again(ann, org):
    typed = {"recipient": "Reto Roth <reto@person.example>", "s:/note": "hello"}
    shown = post(ann, **typed)
    factories.contact(org, first_name="Rita", email="reto@person.example")
    again = post(ann, **dict(shown.context["typed"]), key="k", do="send")
    assert "The recipient has changed" in again.context["preview"].change
    assert not Message.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_people_who_send_at_once_add_one_contact(org):
    typed = {"recipient": "Reto Roth <reto@person.example>", "s:/note": "hello"}
    people = [client_of(Client, org, name) for name in ("ann", "ben")]
    form = {**dict(post(people[0], **typed).context["typed"]), "key": "k", "do": "send"}
    (answer,) = during(*(partial(post, each, **form) for each in people))
    assert answer.status_code == 302
    assert org.contact_set.count() == 1


def test_recipient_that_is_too_long_or_has_a_nul_is_never_added(ann, org):
    nested = "(" * 3000
    assert ann.get(url("send"), {"recipient": nested}).status_code == 200
    for recipient in (nested, f"{'A' * 300} <a@person.example>", "A\0 <a@person.example>"):
        for do in ("choose", "preview", "send"):
            assert post(ann, do=do, recipient=recipient).status_code == 200
    assert not org.contact_set.exists()


def test_frame_says_what_is_wrong_with_a_value(ann, org, ada):
    rule = {"type": "array", "items": {"type": "number"}}
    variables = {"type": "object", "properties": {"sizes": rule}}
    factories.template(org, name="order", html="<p>{{ sizes }}</p>", variables=variables)
    fields = {"template": "EMAIL order", "recipient": str(ada.pk), "s:/sizes": "<x>"}
    framed = ann.post(url("send_frame"), fields)
    assert framed.status_code == 200
    assert "sizes" in framed.content.decode()
    assert "<x>" not in framed.content.decode()
