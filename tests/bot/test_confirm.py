"""Look-ups: what each finds, its records whole, and what they cost."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from bot.models import BotSettings
from rme.core import ids
from rme.crm.models import Account, Case, Contact, Event, EventRegistration, Exhibitor, Speaker
from tests import factories
from tests.bot.conftest import bot_of

pytestmark = pytest.mark.django_db

START = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)
NOBODY = "00000000-0000-7000-8000-000000000000"


def iso(moment):
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def contact_record(row, **changes):
    record = {
        "contactID": str(row.pk),
        "firstName": row.first_name,
        "lastName": row.last_name,
        "name": f"{row.first_name} {row.last_name}",
        "email": row.email,
        "phone": row.phone or row.mobile,
        "AccountID": "",
        "accountName": "",
    }
    return {**record, **changes}


@pytest.fixture
def account(bot):
    return Account.objects.create(
        organization=bot.org, name="Café Müller GmbH", phone="+41", website="https://x.example"
    )


@pytest.fixture
def ada(bot, account):
    return factories.contact(
        bot.org, email="Ada@Example.org", account=account, phone="+12127365000"
    )


@pytest.fixture
def event(bot):
    return Event.objects.create(organization=bot.org, name="Congress", starts_at=START)


@pytest.mark.parametrize("email", ["ada@example.org", " ADA@EXAMPLE.ORG ", "Ada@Example.org."])
def test_a_contact_is_found_by_email(bot, ada, account, email):
    wanted = contact_record(ada, AccountID=str(account.pk), accountName="Café Müller GmbH")
    assert bot.confirm("Confirm_Contact", email=email) == [wanted]


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("ada@bücher.example", "ada@xn--bcher-kva.example"),
        ("ada@xn--bcher-kva.example", "ada@bücher.example"),
        ("Ada@BÜCHER.example", "ada@bücher.example"),
        ("ada+tag@example.org", "ada+tag@example.org"),
    ],
)
def test_an_email_is_found_however_it_is_written(bot, stored, asked):
    row = factories.contact(bot.org, email=stored)
    assert bot.confirm("Confirm_Contact", email=asked) == [contact_record(row)]


def test_a_plus_that_was_not_encoded_is_a_plus(bot):
    row = factories.contact(bot.org, email="ada+tag@example.org", phone="+41446681800")
    path = f"/bot/api.php?org={bot.org.pk}&action="
    by_email = bot.client.get(
        f"{path}Confirm_Contact&email=ada+tag@example.org", headers=bot.headers()
    )
    by_phone = bot.client.get(
        f"{path}Confirm_Contact_Phone&phone=+41446681800", headers=bot.headers()
    )
    assert by_email.json()["msg"] == by_phone.json()["msg"] == [contact_record(row)]


@pytest.mark.parametrize(
    "email", ["da@example.org", "ada@example.or", "nobody@example.org", "%@example.org"]
)
def test_no_contact_is_an_answer(bot, ada, email):
    assert bot.confirm("Confirm_Contact", email=email) == []


@pytest.mark.parametrize(
    "phone", ["(212) 736-5000", "+1 212 736 5000", "212.736.5000", "+12125550100"]
)
def test_a_contact_is_found_by_any_phone(bot, ada, account, phone):
    wanted = contact_record(ada, AccountID=str(account.pk), accountName="Café Müller GmbH")
    assert bot.confirm("Confirm_Contact_Phone", phone=phone) == [wanted]


def test_the_region_reads_a_phone(bot):
    swiss = bot_of(factories.organization("swiss", region="CH"))
    row = factories.contact(swiss.org, phone="", mobile="+41791234567")
    assert swiss.confirm("Confirm_Contact_Phone", phone="079 123 45 67") == [contact_record(row)]
    assert swiss.confirm("Confirm_Contact_Phone", phone="+1 791 234 5678") == []


def test_the_newest_contacts_come_first_and_no_more_than_ten(bot):
    rows = [factories.contact(bot.org, email="same@example.org") for _ in range(12)]
    assert bot.confirm("Confirm_Contact", email="same@example.org") == [
        contact_record(row) for row in rows[:1:-1]
    ]
    BotSettings.objects.create(organization=factories.organization("few"), max_records=1)
    few = bot_of(BotSettings.objects.get().organization)
    factories.contact(few.org, email="same@example.org")
    last = factories.contact(few.org, email="same@example.org")
    assert few.confirm("Confirm_Contact", email="same@example.org") == [contact_record(last)]


def test_cases_come_newest_first(bot, ada, account):
    rows = [
        Case.objects.create(
            organization=bot.org,
            number=str(number),
            subject=f"S{number}",
            issue="Line\nanother",
            contact=ada,
            account=account if number == 1 else None,
            status="Closed" if number == 1 else "New",
        )
        for number in (1, 2)
    ]
    for row in rows:
        row.refresh_from_db()
    assert bot.confirm("Confirm_Case", email="ada@example.org") == [
        {
            "caseID": str(row.pk),
            "caseNumber": row.number,
            "Subject": row.subject,
            "Issue": "Line\nanother",
            "status": row.status,
            "priority": "Medium",
            "isClosed": row is rows[0],
            "createdDate": iso(row.created_at),
            "ContactID": str(ada.pk),
            "AccountID": str(account.pk) if row is rows[0] else "",
        }
        for row in reversed(rows)
    ]


def test_registrations_of_the_newest_event_come_first(bot, ada, event):
    later = Event.objects.create(
        organization=bot.org, name="Later", starts_at=START + timedelta(days=1)
    )
    own = EventRegistration.objects.create(
        organization=bot.org, event=event, name="Ada L", email="ADA@example.org", attended=True
    )
    by_contact = EventRegistration.objects.create(
        organization=bot.org,
        event=later,
        contact=ada,
        name="Ada L",
        email="other@example.org",
        status="Cancelled",
        ticket_type="Full",
    )
    for row in (own, by_contact):
        row.refresh_from_db()
    assert bot.confirm("Confirm_Registration", email="ada@example.org") == [
        {
            "registrationID": str(by_contact.pk),
            "eventID": str(later.pk),
            "eventName": "Later",
            "eventStart": "2026-03-05T09:30:00Z",
            "contactID": str(ada.pk),
            "name": "Ada L",
            "email": "other@example.org",
            "status": "Cancelled",
            "isRegistered": False,
            "attended": False,
            "ticketType": "Full",
            "registeredDate": iso(by_contact.created_at),
        },
        {
            "registrationID": str(own.pk),
            "eventID": str(event.pk),
            "eventName": "Congress",
            "eventStart": "2026-03-04T09:30:00Z",
            "contactID": "",
            "name": "Ada L",
            "email": "ADA@example.org",
            "status": "Registered",
            "isRegistered": True,
            "attended": True,
            "ticketType": "",
            "registeredDate": iso(own.created_at),
        },
    ]


def test_speakers_of_a_contact_and_of_an_event(bot, ada, event):
    later = Event.objects.create(
        organization=bot.org, name="Later", starts_at=START + timedelta(days=1)
    )
    first = Speaker.objects.create(
        organization=bot.org,
        event=event,
        contact=ada,
        session_title="Engines",
        session_start=START,
        room="1",
    )
    second = Speaker.objects.create(organization=bot.org, event=later, contact=ada)
    wanted = {
        "speakerID": str(first.pk),
        "eventID": str(event.pk),
        "eventName": "Congress",
        "contactID": str(ada.pk),
        "name": "Ada Lovelace",
        "email": "Ada@Example.org",
        "sessionTitle": "Engines",
        "sessionStart": "2026-03-04T09:30:00Z",
        "room": "1",
        "status": "Confirmed",
    }
    other = {
        **wanted,
        "speakerID": str(second.pk),
        "eventID": str(later.pk),
        "eventName": "Later",
        "sessionTitle": "",
        "sessionStart": "",
        "room": "",
    }
    contact = str(ada.pk)
    assert bot.confirm("Confirm_Speaker", contactID=contact) == [other, wanted]
    assert bot.confirm("Confirm_Speaker", CONTACTid=contact, eventID="") == [other, wanted]
    assert bot.confirm("Confirm_Speaker", contactID=contact, eventID=str(event.pk)) == [wanted]
    assert bot.confirm("Confirm_Speaker", contactID=contact, eventID=NOBODY) == []
    assert bot.confirm("Confirm_Speaker", contactID=contact, eventID="x") == []
    assert bot.confirm("Confirm_Speaker", contactID=NOBODY) == []


def test_exhibitors_of_a_contact(bot, ada, account, event):
    row = Exhibitor.objects.create(
        organization=bot.org, event=event, account=account, contact=ada, booth="B1", level="Gold"
    )
    assert bot.confirm("Confirm_Exhibitor", contactID=str(ada.pk)) == [
        {
            "exhibitorID": str(row.pk),
            "eventID": str(event.pk),
            "eventName": "Congress",
            "AccountID": str(account.pk),
            "accountName": "Café Müller GmbH",
            "contactID": str(ada.pk),
            "booth": "B1",
            "level": "Gold",
            "status": "Confirmed",
        }
    ]
    assert bot.confirm("Confirm_Exhibitor", contactID=str(account.pk)) == []


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("Café Müller GmbH", "exact"),
        ("Café Müller GmbH ", "exact"),
        ("cafe muller", "folded"),
        ("CAFE-MÜLLER G.m.b.H.", "folded"),
    ],
)
def test_an_account_is_found_by_name(bot, account, name, match):
    assert bot.confirm("Confirm_Account", accountName=name) == [
        {
            "AccountID": str(account.pk),
            "accountName": "Café Müller GmbH",
            "phone": "+41",
            "website": "https://x.example",
            "matchType": match,
        }
    ]


def test_an_account_written_exactly_so_comes_first(bot, account):
    Account.objects.create(organization=bot.org, name="Cafe Muller Ltd")
    names = [
        (record["accountName"], record["matchType"])
        for record in bot.confirm("Confirm_Account", accountName="Café Müller GmbH")
    ]
    assert names == [("Café Müller GmbH", "exact"), ("Cafe Muller Ltd", "folded")]
    assert bot.confirm("Confirm_Account", accountName="Café") == []


def test_another_organization_finds_nothing(bot, ada, account, event):
    Case.objects.create(organization=bot.org, number="1", subject="S", issue="I", contact=ada)
    EventRegistration.objects.create(organization=bot.org, event=event, name="A", email=ada.email)
    Speaker.objects.create(organization=bot.org, event=event, contact=ada)
    Exhibitor.objects.create(organization=bot.org, event=event, contact=ada)
    stranger = bot_of(factories.organization("other"))
    for action, fields in look_ups(ada, account).items():
        assert len(bot.confirm(action, **fields)) == 1
        assert stranger.confirm(action, **fields) == []


def look_ups(ada, account):
    return {
        "Confirm_Contact": {"email": ada.email},
        "Confirm_Contact_Phone": {"phone": ada.mobile},
        "Confirm_Case": {"email": ada.email},
        "Confirm_Registration": {"email": ada.email},
        "Confirm_Speaker": {"contactID": str(ada.pk)},
        "Confirm_Exhibitor": {"contactID": str(ada.pk)},
        "Confirm_Account": {"accountName": account.name},
    }


def test_a_call_is_two_statements_however_much_is_found(bot, ada, account, event):
    for number in range(5):
        Case.objects.create(
            organization=bot.org, number=str(number), subject="S", issue="I", contact=ada
        )
        EventRegistration.objects.create(
            organization=bot.org, event=event, name="A", email=ada.email
        )
    bot.confirm("Confirm_Contact", email="nobody@example.org")  # reads the settings
    for action, fields in look_ups(ada, account).items():
        with CaptureQueriesContext(connection) as captured:
            bot.get(action, **fields)
        assert len(captured) == 2, action


def test_large_records_are_cut_to_what_bots_take(bot, ada):
    for number in range(10):
        Case.objects.create(
            organization=bot.org, number=str(number), subject="S", issue="ü" * 32_000, contact=ada
        )
    response = bot.get("Confirm_Case", email=ada.email)
    issues = {record["Issue"] for record in response.json()["msg"]}
    assert (len(response.json()["msg"]), issues) == (10, {"ü" * 1999 + "…"})
    assert len(response.content) <= 64_000


def test_records_that_are_too_many_at_any_length_are_fewer(bot, event):
    BotSettings.objects.create(organization=bot.org, max_records=50)
    worst = "\x01" * 255
    ada = factories.contact(bot.org, first_name=worst, last_name=worst, email="a@b.example")
    for _ in range(50):
        Speaker.objects.create(
            organization=bot.org, event=event, contact=ada, session_title=worst, room="\x01" * 100
        )
    response = bot.get("Confirm_Speaker", contactID=str(ada.pk))
    assert 10 < len(response.json()["msg"]) < 50
    assert len(response.content) <= 64_000


def test_a_million_rows_elsewhere_do_not_matter_to_the_plan(bot, ada):
    Contact.objects.bulk_create(
        Contact(id=ids.new_id(), organization=bot.org, last_name="L", email=f"p{i}@x.example")
        for i in range(3000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE crm_contact")
    with connection.cursor() as cursor, CaptureQueriesContext(connection) as captured:
        bot.get("Confirm_Contact", email="p7@x.example")
        bot.get("Confirm_Contact_Phone", phone="+12127365000")
        plans = []
        for query in captured.captured_queries:
            if "crm_contact" in query["sql"]:
                cursor.execute(f"EXPLAIN {query['sql']}")
                plans.append("\n".join(line for (line,) in cursor.fetchall()))
    assert ["contact_by_email" in plans[0], "Seq Scan" in plans[0]] == [True, False]
    assert ["contact_by_phone" in plans[1], "contact_by_mobile" in plans[1]] == [True, True]
