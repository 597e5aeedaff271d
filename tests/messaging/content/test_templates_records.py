"""What templates know of contacts, organizations, senders and records."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import Message, MessageContent
from rme.crm.connectors.embedded.records import RECORD_FIELDS
from rme.crm.models import Account, Case, Event, EventRegistration, Exhibitor, Speaker
from tests import factories
from tests.messaging.content.templates_scene import sent_text
from tests.rest import error, message

pytestmark = pytest.mark.django_db
AT = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)


@pytest.fixture
def ada(org):
    return factories.contact(org, language="de_CH", zone="Europe/Zurich")


@pytest.mark.promise("templates-5")
def test_fields_of_contact_organization_and_sender_cannot_be_overridden(api, org, ada):
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
        (account, {"name": "Northwind", "phone": "+41446681800", "website": "https://n.example"}),
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
        (event, {"name": "Congress", "starts_at": "2026-05-04T09:30:00+00:00", "ends_at": None}),
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


@pytest.mark.promise("request-16")
def test_record_of_any_kind_provides_its_fields(api, org, ada):
    factories.template(
        org, name="any", text="{{ record.type }} {{ record.name }}{{ record.subject }}"
    )
    rows = records(org, ada)
    assert [type(row) for row, _ in rows] == [*RECORD_FIELDS]
    for row, fields in rows:
        named = {"name": "any", "language": "en_US"}
        body = message(ada, template=named, context={"recordId": str(row.pk)})
        message_id = api.send(body).json()["messageId"]
        record = MessageContent.objects.get(pk=message_id).body["record"]
        assert record.pop("created_at")
        assert record == {"type": type(row).__name__, "id": str(row.pk), **fields}


def test_fields_of_records_are_documented():
    documented = Path(__file__).parents[3] / "docs" / "templates.md"
    lines = documented.read_text().splitlines()
    for model, fields in RECORD_FIELDS.items():
        names = ", ".join(f"`{field}`" for field in fields)
        assert f"| `{model.__name__}` | {names} |" in lines


@pytest.mark.promise("request-16")
def test_record_is_rendered_as_of_accept(api, org, ada):
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


@pytest.mark.promise("request-17")
@pytest.mark.parametrize("record_id", ["nothing", "01a1fb37-a4a4-7470-9fc2-6927566e64b5", "other"])
def test_unknown_or_foreign_record_is_not_found(api, org, ada, record_id):
    if record_id == "other":
        other = factories.organization("other")
        record_id = str(Account.objects.create(organization=other, name="Theirs").pk)
    refused = error(
        "NOT_FOUND", "context.recordId: no such record", ("context.recordId", "no such record")
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
