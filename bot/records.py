"""Records in the API's form: flat objects that always have every key."""

from collections.abc import Mapping
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

_EVENT = {"eventID": "event_id", "eventName": "event_name"}
KEYS: Mapping[type, Mapping[str, str]] = {
    ContactRecord: {
        "contactID": "id",
        "firstName": "first_name",
        "lastName": "last_name",
        "name": "name",
        "email": "email",
        "phone": "phone",
        "AccountID": "account_id",
        "accountName": "account_name",
    },
    AccountRecord: {
        "AccountID": "id",
        "accountName": "name",
        "phone": "phone",
        "website": "website",
    },
    CaseRecord: {
        "caseID": "id",
        "caseNumber": "number",
        "Subject": "subject",
        "Issue": "issue",
        "status": "status",
        "priority": "priority",
        "isClosed": "is_closed",
        "createdDate": "created_at",
        "ContactID": "contact_id",
        "AccountID": "account_id",
    },
    RegistrationRecord: {
        "registrationID": "id",
        **_EVENT,
        "eventStart": "event_start",
        "contactID": "contact_id",
        "name": "name",
        "email": "any_email",
        "status": "status",
        "isRegistered": "is_registered",
        "attended": "attended",
        "ticketType": "ticket_type",
        "registeredDate": "registered_at",
    },
    SpeakerRecord: {
        "speakerID": "id",
        **_EVENT,
        "contactID": "contact_id",
        "name": "name",
        "email": "email",
        "sessionTitle": "session_title",
        "sessionStart": "session_start",
        "room": "room",
        "status": "status",
    },
    ExhibitorRecord: {
        "exhibitorID": "id",
        **_EVENT,
        "AccountID": "account_id",
        "accountName": "account_name",
        "contactID": "contact_id",
        "booth": "booth",
        "level": "level",
        "status": "status",
    },
}
"""By kind of record: the API's keys, in order, and the attributes that they show."""


def shown(record: object) -> dict[str, Any]:
    """Return a record in the API's form."""
    return {key: _json(getattr(record, name)) for key, name in KEYS[type(record)].items()}


def _json(value: object) -> object:
    """Return a time as text, and an empty one for None; other values unchanged."""
    if isinstance(value, datetime):
        return iso(value.astimezone(UTC))
    return "" if value is None else value
