"""Look-ups of what a contact has: cases, registrations, speakers, exhibitors, whole."""

from datetime import timedelta

import pytest

from rme.crm.models import Case, Event, EventRegistration, Exhibitor, Speaker
from tests.bot.confirm_scene import START
from tests.rest import instant

pytestmark = pytest.mark.django_db
NOBODY = "00000000-0000-7000-8000-000000000000"


@pytest.mark.promise("bot-calls-10", "look-ups-3")
def test_newest_cases_come_first(bot, ada, account):
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
            "createdDate": instant(row.created_at),
            "ContactID": str(ada.pk),
            "AccountID": str(account.pk) if row is rows[0] else "",
        }
        for row in reversed(rows)
    ]


@pytest.mark.promise("bot-calls-10", "look-ups-4")
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
            "registeredDate": instant(by_contact.created_at),
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
            "registeredDate": instant(own.created_at),
        },
    ]


@pytest.mark.promise("bot-calls-4", "bot-calls-10", "look-ups-5")
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


@pytest.mark.promise("bot-calls-10", "look-ups-6")
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
