"""Templates at accept and at send: languages, variables, records, partials, versions."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging import claiming, policy, preparing, templates
from messaging.models import Message, MessageContent, Partial, TemplateVersion
from messaging.outcome import Sending
from rme.core.cache import TtlCache
from rme.core.channels import Channel
from rme.core.errors import InvalidPayload
from rme.crm.connectors.embedded_records import FIELDS
from rme.crm.models import Account, Case, Event, EventRegistration, Exhibitor, Speaker
from tests import factories
from tests.rest import Api, error, message, work

pytestmark = pytest.mark.django_db
AT = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)


@pytest.fixture
def ada(org):
    return factories.contact(org, language="de_CH", zone="Europe/Zurich")


def composed(org, channel=Channel.EMAIL):
    """Claim what is ready and give the texts that would go out, by their recipients' addresses."""
    claim = claiming.claim(org.pk, channel, 0)
    rules = policy.of(org.pk)
    hand = [Sending(claimed, rules.rules(claimed.category)) for claimed in claim.deliveries]
    preparing.prepare(claim, hand, rules)
    return {s.address: [content for _, content in s.contents] or s.detail for s in hand}


def sent_text(org, channel=Channel.EMAIL):
    ((only,),) = composed(org, channel).values()
    return only.text


def in_languages(org, *languages, name="greeting", channel="EMAIL"):
    for language in languages:
        texts = {"subject": language} if channel == "EMAIL" else {}
        factories.template(
            org, channel, name=name, language=language, text=f"text in {language}", **texts
        )


# --- languages -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("fallback", "there", "asked", "chosen"),
    [
        (False, ["en_GB", "en", "en_US"], "en_GB", "en_GB"),
        (False, ["en", "en_US"], "en_GB", None),
        (True, ["en_GB", "en", "en_US"], "en_GB", "en_GB"),
        (True, ["en", "en_US"], "en_GB", "en"),
        (True, ["en_US", "de"], "en_GB", "en_US"),
        (True, ["en_US", "de"], "fr", "en_US"),
        (True, ["de"], "en_GB", None),
        (True, ["en_GB"], "en", None),
        (False, ["de_CH", "de", "en_US"], None, "de_CH"),
        (False, ["de", "en_US"], None, None),
        (True, ["de", "en_US"], None, "de"),
    ],
)
def test_language_at_accept_at_render_and_at_send(org, ada, fallback, there, asked, chosen):
    org.locale_fallback = fallback
    org.save()
    in_languages(org, *there)
    TtlCache.clear_all()
    api = Api(org)
    named = {"name": "greeting"} | ({"language": asked} if asked else {})
    accepted = api.send(message(ada, template=named))
    rendered = api.call(
        "POST",
        "/templates/greeting/render",
        {"contactId": str(ada.pk)} | ({"language": asked} if asked else {}),
    )
    if chosen is None:
        said = f"There is no active template greeting in {asked or 'de_CH'} for EMAIL"
        assert accepted.json() == error("TEMPLATE_NOT_FOUND", f"{said}.")
        said = said.replace("EMAIL", "EMAIL, SMS, PUSH")
        assert rendered.json() == error("TEMPLATE_NOT_FOUND", f"{said}.")
        return
    assert accepted.status_code == 202
    assert (rendered.json()["language"], rendered.json()["text"]) == (chosen, f"text in {chosen}")
    assert sent_text(org) == f"text in {chosen}"


def test_language_left_out_is_the_organizations_for_whoever_has_none(api, org):
    in_languages(org, "en_US", "de")
    nobody = factories.contact(org, language="")
    assert api.send(message(nobody, template={"name": "greeting"})).status_code == 202
    rendered = api.call("POST", "/templates/greeting/render", {"contactId": str(nobody.pk)})
    assert rendered.json()["language"] == "en_US"
    assert api.call("POST", "/templates/greeting/render", {}).json()["language"] == "en_US"
    assert sent_text(org) == "text in en_US"


# --- variables -----------------------------------------------------------------------------------
SCHEMA = {
    "type": "object",
    "required": ["code", "order", "tone"],
    "properties": {
        "code": {"type": "string"},
        "order": {"type": "object", "properties": {"total": {"type": "number"}}},
        "tone": {"type": "string", "default": "friendly"},
    },
}
TEXT = "{{ code }} {{ order.total }} {{ tone }}"


def strict(person, **variables):
    return message(person, template={"name": "strict", "language": "en_US"}, context={
        "variables": variables,
    })  # fmt: skip


def test_variables_that_are_missing_or_of_another_type_are_named_at_accept(api, org, ada):
    factories.template(org, name="strict", text=TEXT, variables=SCHEMA)
    missing = api.send(strict(ada, code="A"))
    assert missing.status_code == 400
    place = "context.variables.order"
    assert missing.json() == error(
        "INVALID_PAYLOAD",
        f"{place}: is required by the template",
        (place, "is required by the template"),
    )
    wrong = api.send(strict(ada, code=5, order={"total": "x"}, tone=None))
    assert wrong.json()["error"]["details"] == [
        {"field": "context.variables.code", "message": "must be of type string"},
        {"field": "context.variables.tone", "message": "must be of type string"},
        {"field": "context.variables.order.total", "message": "must be of type number"},
    ]
    assert Message.objects.count() == 0


def test_default_of_the_schema_is_sent_unless_one_is_given(api, org, ada):
    factories.template(org, name="strict", text=TEXT, variables=SCHEMA)
    assert api.send(strict(ada, code="A", order={"total": 1.5})).status_code == 202
    assert sent_text(org) == "A 1.5 friendly"
    body = strict(ada, code="A", order={"total": 1}, tone="stern")
    body["to"][0]["variables"] = {"code": "own"}
    assert api.send(body).status_code == 202
    assert sent_text(org) == "own 1 stern"


def test_default_that_does_not_fit_keeps_a_version_from_becoming_active(org):
    schema = {"properties": {"n": {"type": "integer", "default": "many"}}}
    with pytest.raises(InvalidPayload) as raised:
        factories.template(org, name="bad", text="x", variables=schema)
    (only,) = raised.value.details
    assert (only.field, only.message) == (
        "variables", "the default of n must be of type integer",
    )  # fmt: skip


# --- what the platform gives ---------------------------------------------------------------------
def test_contact_organization_and_sender_give_their_fields_and_no_variable_replaces_them(
    api, org, ada
):
    names = {
        "contact": ["id", "first_name", "last_name", "name", "email", "mobile", "language", "zone"],
        "org": ["id", "name", "brand_color"],
        "sender": ["domain", "local_part", "name"],
    }
    source = "\n".join(
        f"{root}.{name}={{{{ {root}.{name} }}}}"
        for root, fields in names.items()
        for name in fields
    )
    factories.template(org, name="all", text=source)
    forged = {root: {"id": "forged", "name": "forged"} for root in names}
    named = {"name": "all", "language": "en_US"}
    api.send(message(ada, template=named, context={"variables": forged}))
    assert sent_text(org).split("\n") == [
        f"contact.id={ada.pk}",
        "contact.first_name=Ada",
        "contact.last_name=Lovelace",
        "contact.name=Ada Lovelace",
        "contact.email=ada@simulator.rme.test",
        "contact.mobile=+12125550100",
        "contact.language=de_CH",
        "contact.zone=Europe/Zurich",
        "org.id=acme",
        "org.name=Acme",
        "org.brand_color=#1f4e79",
        "sender.domain=acme.example",
        "sender.local_part=no-reply",
        "sender.name=Acme",
    ]


def records(org, ada):
    """Make a record of each kind; gives the row and the fields that it has beside the common."""
    account = Account.objects.create(
        organization=org, name="Northwind", phone="+41446681800", website="https://n.example"
    )
    ada.account = account
    ada.save()
    event = Event.objects.create(organization=org, name="Congress", starts_at=AT)
    at_event = {
        "event_id": str(event.pk),
        "event_name": "Congress",
        "event_starts_at": "2026-05-04T09:30:00+00:00",
        "event_ends_at": None,
    }
    of_account = {"account_id": str(account.pk), "account_name": "Northwind"}
    of_contact = {"contact_id": str(ada.pk), "contact_name": "Ada Lovelace"}
    nobody = {"contact_id": None, "contact_name": None}
    case = Case.objects.create(
        organization=org, number="7", subject="S", issue="I", contact=ada, account=account
    )
    registration = EventRegistration.objects.create(
        organization=org, event=event, name="Bob", email="b@c.example", ticket_type="VIP"
    )
    speaker = Speaker.objects.create(
        organization=org, event=event, contact=ada, session_title="T", session_start=AT, room="1"
    )
    exhibitor = Exhibitor.objects.create(
        organization=org, event=event, account=account, booth="B1", level="Gold"
    )
    return [
        (
            account,
            {"name": "Northwind", "phone": "+41446681800", "website": "https://n.example"},
        ),
        (
            ada,
            {
                "first_name": "Ada",
                "last_name": "Lovelace",
                "email": "ada@simulator.rme.test",
                "phone": "",
                "mobile": "+12125550100",
                "language": "de_CH",
                "zone": "Europe/Zurich",
                **of_account,
            },
        ),
        (
            case,
            {
                "number": "7",
                "subject": "S",
                "issue": "I",
                "status": "New",
                "priority": "Medium",
                **of_contact,
                **of_account,
            },
        ),
        (
            event,
            {"name": "Congress", "starts_at": "2026-05-04T09:30:00+00:00", "ends_at": None},
        ),
        (
            registration,
            {
                "name": "Bob",
                "email": "b@c.example",
                "status": "Registered",
                "ticket_type": "VIP",
                "attended": False,
                **nobody,
                **at_event,
            },
        ),
        (
            speaker,
            {
                "session_title": "T",
                "session_start": "2026-05-04T09:30:00+00:00",
                "room": "1",
                "status": "Confirmed",
                **of_contact,
                **at_event,
            },
        ),
        (
            exhibitor,
            {
                "booth": "B1",
                "level": "Gold",
                "status": "Confirmed",
                **of_account,
                **nobody,
                **at_event,
            },
        ),
    ]


def test_record_of_any_kind_gives_its_fields(api, org, ada):
    factories.template(
        org, name="any", text="{{ record.type }} {{ record.name }}{{ record.subject }}"
    )
    for row, fields in records(org, ada):
        named = {"name": "any", "language": "en_US"}
        body = message(ada, template=named, context={"recordId": str(row.pk)})
        message_id = api.send(body).json()["messageId"]
        record = MessageContent.objects.get(pk=message_id).body["record"]
        assert record.pop("created_at")
        assert record == {"type": type(row).__name__, "id": str(row.pk), **fields}


def test_fields_of_records_are_documented():
    documented = Path(__file__).parents[2] / "docs" / "templates.md"
    lines = documented.read_text().splitlines()
    for model, fields in FIELDS.items():
        told = ", ".join(f"`{field}`" for field in fields)
        assert f"| `{model.__name__}` | {told} |" in lines


def test_record_is_sent_as_it_was_when_the_message_was_accepted(api, org, ada):
    event = Event.objects.create(organization=org, name="Congress", starts_at=AT)
    source = "{{ record.name }} {{ record.starts_at | date: '%d %B %Y, %H:%M' }}"
    factories.template(org, name="invitation", text=source)
    body = message(
        ada,
        template={"name": "invitation", "language": "en_US"},
        context={"recordId": str(event.pk), "variables": {"record": {"name": "forged"}}},
    )
    assert api.send(body).status_code == 202
    Event.objects.update(name="Renamed")
    assert sent_text(org) == "Congress 04 May 2026, 09:30"


@pytest.mark.parametrize("record_id", ["nothing", "01a1fb37-a4a4-7470-9fc2-6927566e64b5", "other"])
def test_record_that_is_not_there_or_anothers_is_not_found(api, org, ada, record_id):
    if record_id == "other":
        other = factories.organization("other")
        record_id = str(Account.objects.create(organization=other, name="Theirs").pk)
    refused = error(
        "NOT_FOUND",
        "context.recordId: no such record",
        ("context.recordId", "no such record"),
    )
    response = api.send(message(ada, context={"recordId": record_id, "variables": {"note": ""}}))
    assert (response.status_code, response.json()) == (404, refused)
    rendered = api.call(
        "POST",
        "/templates/welcome/render",
        {"channel": "SMS", "language": "en_US", "context": {"recordId": record_id}},
    )
    assert (rendered.status_code, rendered.json()) == (404, refused)
    assert Message.objects.count() == 0


@pytest.mark.parametrize("count", [1, 30])
def test_records_of_a_bulk_cost_one_statement(api, org, ada, count):
    people = factories.contacts(org, count)
    accounts = Account.objects.bulk_create(
        Account(organization=org, name=f"A{n}") for n in range(count)
    )
    plain = [message(person) for person in people]
    api.bulk(plain)  # so that caches are warm
    with CaptureQueriesContext(connection) as without:
        api.bulk(plain)
    bodies = [
        message(person, context={"recordId": str(account.pk)})
        for person, account in zip(people, accounts, strict=True)
    ]
    with CaptureQueriesContext(connection) as captured:
        assert api.bulk(bodies).json()["accepted"] == count
    assert len(captured) - len(without) == 1


# --- partials ------------------------------------------------------------------------------------
def partial(org, name, text):
    return Partial.objects.create(organization=org, name=name, text=text)


def test_partial_is_the_organizations_own(api, org, ada):
    partial(org, "footer", "© {{ year }} Acme")
    partial(factories.organization("other"), "footer", "theirs")
    factories.template(org, name="p", text="Hi\n{% render 'footer', year: 2026 %}")
    api.send(message(ada, template={"name": "p", "language": "en_US"}))
    assert sent_text(org) == "Hi\n© 2026 Acme"


def test_partial_of_another_organization_is_missing(org):
    partial(factories.organization("other"), "footer", "theirs")
    with pytest.raises(InvalidPayload) as raised:
        factories.template(org, name="p", text="Hi {% render 'footer' %}")
    (only,) = raised.value.details
    assert (only.field, only.message) == ("text", "there is no partial 'footer'")
    assert not TemplateVersion.objects.filter(template__name="p", state="ACTIVE").exists()


def test_partial_that_changed_is_sent_as_it_is_now(api, org, ada):
    footer = partial(org, "footer", "old")
    factories.template(org, name="p", text="Hi {% render 'footer' %}")
    body = message(ada, template={"name": "p", "language": "en_US"})
    api.send(body)
    assert sent_text(org) == "Hi old"
    api.send(body)
    footer.text = "new"
    footer.save()
    templates.forget_partials(org.pk)  # or two seconds later
    assert sent_text(org) == "Hi new"


def test_partial_that_is_gone_fails_the_messages_that_need_it_alone(api, org, ada):
    partial(org, "footer", "x")
    factories.template(org, name="p", text="Hi {% render 'footer' %}")
    needing = api.send(message(ada, template={"name": "p", "language": "en_US"})).json()
    other = api.send(message(ada)).json()
    Partial.objects.all().delete()
    templates.forget_partials(org.pk)
    work()
    assert api.get(other["messageId"])["status"] == "DELIVERED"
    failed = api.get(needing["messageId"])
    assert (failed["status"], failed["error"]) == (
        "FAILED",
        {
            "code": "TEMPLATE_ERROR",
            "message": "text, line 1, column 7: there is no partial 'footer'",
        },
    )


# --- versions ------------------------------------------------------------------------------------
def states(version):
    return dict(version.template.versions.values_list("version", "state"))


def test_version_that_was_archived_is_made_active_again(api, org, ada):
    first = factories.template(org, name="v", text="first")
    second = templates.save_version(first.template, {"subject": "s", "text": "second"})
    body = message(ada, template={"name": "v", "language": "en_US"})
    assert states(first) == {1: "ACTIVE", 2: "DRAFT"}
    api.send(body)
    templates.activate(second)
    assert states(first) == {1: "ARCHIVED", 2: "ACTIVE"}
    assert sent_text(org) == "first"  # as it was accepted
    api.send(body)
    assert sent_text(org) == "second"
    templates.activate(first)
    assert states(first) == {1: "ACTIVE", 2: "ARCHIVED"}
    api.send(body)
    assert sent_text(org) == "first"
    assert templates.save_version(first.template, {"text": "third"}).version == 3


def test_version_that_does_not_parse_leaves_the_active_one_alone(org):
    first = factories.template(org, name="v", text="first")
    second = templates.save_version(first.template, {"subject": "{{ a", "text": "{% if %}"})
    with pytest.raises(InvalidPayload) as raised:
        templates.activate(second)
    assert [detail.field for detail in raised.value.details] == ["subject", "text"]
    assert states(first) == {1: "ACTIVE", 2: "DRAFT"}
