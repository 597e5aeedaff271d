"""Records in the API's form: flat objects that always have every key."""

from datetime import UTC, datetime
from typing import Any

from rme.core.db.clock import iso
from rme.crm.connectors.records import (
    AccountRecord,
    CaseRecord,
    ContactRecord,
    ExhibitorRecord,
    RegistrationRecord,
    SpeakerRecord,
)


def _time(moment: datetime | None) -> str:
    return iso(moment and moment.astimezone(UTC)) or ""


def contact(record: ContactRecord) -> dict[str, object]:
    """Return a contact in the API's form."""
    return {
        "contactID": record.id,
        "firstName": record.first_name,
        "lastName": record.last_name,
        "name": record.name,
        "email": record.email,
        "phone": record.phone,
        "AccountID": record.account_id,
        "accountName": record.account_name,
    }


def account(record: AccountRecord, name: str) -> dict[str, Any]:
    """Return an account found by `name`; `matchType` tells whether the names are equal."""
    return {
        "AccountID": record.id,
        "accountName": record.name,
        "phone": record.phone,
        "website": record.website,
        "matchType": "exact" if record.name == name else "folded",
    }


def case(record: CaseRecord) -> dict[str, object]:
    """Return a case in the API's form."""
    return {
        "caseID": record.id,
        "caseNumber": record.number,
        "Subject": record.subject,
        "Issue": record.issue,
        "status": record.status,
        "priority": record.priority,
        "isClosed": record.is_closed,
        "createdDate": _time(record.created_at),
        "ContactID": record.contact_id,
        "AccountID": record.account_id,
    }


def registration(record: RegistrationRecord) -> dict[str, object]:
    """Return an event registration in the API's form."""
    return {
        "registrationID": record.id,
        "eventID": record.event_id,
        "eventName": record.event_name,
        "eventStart": _time(record.event_start),
        "contactID": record.contact_id,
        "name": record.name,
        "email": record.email or record.contact_email,
        "status": record.status,
        "isRegistered": record.is_registered,
        "attended": record.attended,
        "ticketType": record.ticket_type,
        "registeredDate": _time(record.registered_at),
    }


def speaker(record: SpeakerRecord) -> dict[str, object]:
    """Return a speaker in the API's form."""
    return {
        "speakerID": record.id,
        "eventID": record.event_id,
        "eventName": record.event_name,
        "contactID": record.contact_id,
        "name": record.name,
        "email": record.email,
        "sessionTitle": record.session_title,
        "sessionStart": _time(record.session_start),
        "room": record.room,
        "status": record.status,
    }


def exhibitor(record: ExhibitorRecord) -> dict[str, object]:
    """Return an exhibitor in the API's form."""
    return {
        "exhibitorID": record.id,
        "eventID": record.event_id,
        "eventName": record.event_name,
        "AccountID": record.account_id,
        "accountName": record.account_name,
        "contactID": record.contact_id,
        "booth": record.booth,
        "level": record.level,
        "status": record.status,
    }
