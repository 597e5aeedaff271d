"""Rendering by REST: what is answered, what is warned of, and that nothing is sent or stored."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.content import templates
from messaging.models import Delivery, Message, MessageContent, Template
from rme.core.cache import TtlCache
from rme.crm.models import Event
from tests import factories
from tests.messaging.content.test_templates_records import AT
from tests.rest import Api, error

pytestmark = pytest.mark.django_db
NOTHING = dict.fromkeys(["subject", "text", "html", "title", "body", "data", "sms"])


def render(api, name="welcome", **wanted):
    return api.call("POST", f"/templates/{name}/render", wanted)


def rendered(api, name="welcome", **wanted):
    response = render(api, name, **wanted)
    assert response.status_code == 200, response.json()
    return response.json()


@pytest.mark.promise("templates-10")
def test_email_as_it_would_be_sent(api, org):
    ada = factories.contact(org)
    event = Event.objects.create(organization=org, name="Congress & more", starts_at=AT)
    factories.template(
        org,
        name="full",
        subject="{{ record.name }} for {{ contact.first_name }}",
        text="{{ note }} {{ place }} from {{ sender.name }}",
        html="<p>{{ record.name }}: {{ note }}</p>",
    )
    answer = rendered(
        api,
        "full",
        language="en_US",
        channel="email",
        contactId=str(ada.pk),
        context={"recordId": str(event.pk), "variables": {"note": "all", "place": "Zürich"}},
        variables={"note": "own"},
    )
    assert answer == {
        **NOTHING,
        "name": "full",
        "language": "en_US",
        "channel": "EMAIL",
        "version": 1,
        "subject": "Congress & more for Ada",
        "text": "own Zürich from Acme",
        "html": "<p>Congress &amp; more: own</p>",
        "missing": [],
        "warnings": [],
    }


@pytest.mark.promise("templates-11")
def test_sms_with_its_size(api):
    assert rendered(api, channel="SMS", variables={"note": "10 €"}) == {
        **NOTHING,
        "name": "welcome",
        "language": "en_US",
        "channel": "SMS",
        "version": 1,
        "text": "Note: 10 €",
        "sms": {"encoding": "GSM-7", "characters": 10, "units": 11, "segments": 1},
        "missing": [],
        "warnings": [],
    }


@pytest.mark.promise("templates-10")
def test_push_with_its_data(api, org):
    factories.template(org, "PUSH", name="p", title="T {{ a }}", body="B", data={"id": "{{ b }}"})
    assert rendered(api, "p", variables={"a": 1, "b": "x"}) == {
        **NOTHING,
        "name": "p",
        "language": "en_US",
        "channel": "PUSH",
        "version": 1,
        "title": "T 1",
        "body": "B",
        "data": {"id": "x"},
        "missing": [],
        "warnings": [],
    }


@pytest.mark.promise("templates-10")
def test_missing_variables_and_warnings_are_listed(api, org):
    factories.template(
        org,
        name="odd",
        subject="S" * 90,
        text="{{ contact.first_name }} {{ code }} {{ order.total }}",
        html='<img src="a.png"><p>{{ code }}</p>',
        variables={
            "required": ["code"],
            "properties": {"order": {"properties": {"total": {"type": "number"}}}},
        },
    )
    answer = rendered(api, "odd", variables={"order": {"total": "x"}, "noet": "a typo"})
    assert answer["missing"] == ["contact.first_name", "code"]
    assert answer["warnings"] == [
        {"field": "variables.code", "message": "is required by the template"},
        {"field": "variables.order.total", "message": "must be of type number"},
        {"field": "variables.noet", "message": "is not used by the template"},
        {"field": "subject", "message": "has 90 characters; more than 78 are cut off"},
        {"field": "html", "message": "1 image(s) without alt"},
    ]


def test_expensive_sms_says_why(api):
    answer = rendered(api, channel="SMS", variables={"note": "ç" + "a" * 70})
    assert answer["sms"] == {"encoding": "UCS-2", "characters": 77, "units": 77, "segments": 2}
    assert answer["warnings"] == [
        {"field": "text", "message": "takes 2 segments"},
        {"field": "text", "message": "goes as UCS-2, with 70 units a segment, because of: ç"},
    ]


def test_any_version_can_be_rendered(api, org):
    first = factories.template(org, "SMS", name="v", text="first {{ a }}")
    templates.activate(templates.add_draft(first.template, {"text": "second"}))
    templates.add_draft(first.template, {"text": "draft"})
    shown = [
        (rendered(api, "v", **wanted)["version"], rendered(api, "v", **wanted)["text"])
        for wanted in ({}, {"version": 1, "variables": {"a": "A"}}, {"version": 2}, {"version": 3})
    ]
    assert shown == [(2, "second"), (1, "first A"), (2, "second"), (3, "draft")]


def test_draft_of_mjml_is_compiled_for_it(api, org):
    template = Template.objects.get(channel="EMAIL")
    section = "<mj-section><mj-column><mj-text>Hi {{ n }}</mj-text></mj-column></mj-section>"
    templates.add_draft(template, {"mjml": f"<mjml><mj-body>{section}</mj-body></mjml>"})
    answer = rendered(api, channel="EMAIL", version=2, variables={"n": "<A>"})
    assert "Hi &lt;A&gt;</div>" in answer["html"]
    assert answer["text"] == "Hi <A>\n"


def test_unparsable_draft_says_where(api):
    template = Template.objects.get(channel="SMS")
    templates.add_draft(template, {"text": "a\n{{ b"})
    response = render(api, channel="SMS", version=2)
    assert (response.status_code, response.json()) == (
        400,
        error(
            "INVALID_PAYLOAD",
            "The template does not parse: text, line 2, column 1: '{{' is never closed",
            ("template.text", "'{{' is never closed"),
        ),
    )


def test_template_failing_on_the_data_says_why(api, org):
    factories.template(org, "SMS", name="d", text="{{ 1 | divided_by: n }}")
    response = render(api, "d", variables={"n": 0})
    why = "line 1: divided_by: can't divide by 0"
    assert (response.status_code, response.json()) == (
        400,
        error("INVALID_PAYLOAD", f"The template does not render: {why}", ("variables", why)),
    )


@pytest.mark.promise("templates-12")
@pytest.mark.parametrize(
    ("missing", "channel", "others"),
    [
        ([], "EMAIL", "SMS, PUSH"),
        (["SMS"], "EMAIL", "PUSH"),
        (["EMAIL"], "SMS", "PUSH"),
        (["EMAIL", "SMS"], "PUSH", None),
    ],
)
@pytest.mark.parametrize("version", [None, 1])
def test_first_channel_with_a_version_is_rendered_by_default(
    api, missing, channel, others, version
):
    Template.objects.filter(channel__in=missing).delete()
    given = {} if version is None else {"version": version}
    answer = rendered(api, language="en_US", variables={"note": "hello"}, **given)
    assert answer["channel"] == channel
    message = f"not named: there for {others} too"
    assert [each for each in answer["warnings"] if each["field"] == "channel"] == (
        [{"field": "channel", "message": message}] if others else []
    )


def test_named_channel_needs_no_warning(api):
    answer = rendered(api, language="en_US", channel="SMS", variables={"note": "hello"})
    assert (answer["channel"], answer["warnings"]) == ("SMS", [])


def test_a_channel_in_another_language_is_not_named(api, org):
    Template.objects.exclude(channel="PUSH").delete()
    factories.template(org, channel="EMAIL", language="de_CH")
    answer = rendered(api, language="en_US", variables={"note": "hello"})
    assert (answer["channel"], answer["warnings"]) == ("PUSH", [])


@pytest.mark.parametrize(
    ("name", "wanted", "text"),
    [
        ("nope", {}, "active template nope in en_US for email, SMS, push"),
        ("welcome", {"language": "de"}, "active template welcome in de for email, SMS, push"),
        ("welcome", {"version": 2}, "version 2 of welcome in en_US for email, SMS, push"),
        ("a%00b", {}, "active template a\x00b in en_US for email, SMS, push"),
        ("a%00b", {"version": 1}, "version 1 of a\x00b in en_US for email, SMS, push"),
        ("theirs", {}, "active template theirs in en_US for email, SMS, push"),
    ],
)
def test_unknown_or_foreign_template_is_not_found(api, name, wanted, text):
    factories.template(factories.organization("other"), "SMS", name="theirs", text="x")
    response = render(api, name, **wanted)
    expected = error("TEMPLATE_NOT_FOUND", f"There is no {text}.")
    assert (response.status_code, response.json()) == (404, expected)


def test_unknown_or_foreign_contact_is_not_found(api):
    theirs = factories.contact(factories.organization("other"))
    for contact_id in ("nobody", str(theirs.pk)):
        response = render(api, channel="SMS", contactId=contact_id)
        assert (response.status_code, response.json()) == (
            404,
            error("NOT_FOUND", "contactId: no such contact", ("contactId", "no such contact")),
        )


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"language": "english"}, "language"),
        ({"channel": "FAX"}, "channel"),
        ({"version": 0}, "version"),
        ({"version": 1 << 40}, "version"),
        ({"version": "1"}, "version"),
        ({"contactId": 5}, "contactId"),
        ({"contactId": "a\x00"}, "contactId"),
        ({"variables": []}, "variables"),
        ({"variables": {"a": ["\x00"]}}, "variables.a[0]"),
        ({"context": {"recordId": ""}}, "context.recordId"),
        ({"channel": "SMS", "variables": {"note": "x" * 1_000_001}}, "variables"),
        ({"lang": "en_US"}, "lang"),
    ],
)
def test_bad_requests_are_named(api, wanted, field):
    response = render(api, **wanted)
    assert response.status_code == 400
    assert [d["field"] for d in response.json()["error"]["details"]] == [field]


@pytest.mark.promise("templates-13")
def test_render_only_reads_with_few_statements(api, org):
    ada = factories.contact(org)
    event = Event.objects.create(organization=org, name="Congress", starts_at=AT)
    wanted = {
        "channel": "SMS",
        "contactId": str(ada.pk),
        "context": {"recordId": str(event.pk)},
        "variables": {"note": "x"},
    }
    rendered(api, **wanted)
    with CaptureQueriesContext(connection) as warm:
        rendered(api, **wanted)
    assert len(warm) == 2  # the contact and the record
    with CaptureQueriesContext(connection) as numbered:
        rendered(api, **wanted, version=1)
    assert len(numbered) == 3
    verbs = {query["sql"].split()[0] for query in [*warm, *numbered]}
    assert verbs == {"SELECT"}
    assert [model.objects.count() for model in (Message, MessageContent, Delivery)] == [0, 0, 0]


def test_partials_are_rendered_too(api, org):
    org.partials.create(name="footer", text="© {{ year }} {{ name }}")
    factories.template(org, "SMS", name="p", text="Hi {% render 'footer', year: 2026 %}")
    TtlCache.clear_all()
    answer = rendered(Api(org), "p")
    assert (answer["text"], answer["missing"]) == ("Hi © 2026", ["name"])
