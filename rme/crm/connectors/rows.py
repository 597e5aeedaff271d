"""Records built from a platform's rows."""

from collections.abc import Sequence
from datetime import UTC, datetime

from rme.core import addresses
from rme.core.zones import is_zone
from rme.crm.connectors.records import (
    AccountRecord,
    CaseRecord,
    ContactRecord,
    ExhibitorRecord,
    Record,
    RegistrationRecord,
    SpeakerRecord,
)
from rme.crm.connectors.values import Values

_RENAMED = {"event_start": "event_starts_at"}
"""Fields that templates know by another name than look-ups do."""
_TIMES = frozenset({"created_at", "starts_at", "ends_at", "event_start", "session_start"})
_FLAGS = frozenset({"is_closed", "is_registered", "attended"})
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def record(kind: str, found: Values) -> Record:
    """Return all fields of a record as JSON values, under the names that templates know."""
    fields: dict[str, object] = {"type": kind}
    for name in found.mapped.fields:
        if name.startswith("find_") or name == "phones":
            continue
        if name in _TIMES:
            moment = found.time(name)
            value: object = moment.isoformat() if moment else None
        elif name in _FLAGS:
            value = found.flag(name)
        else:
            value = found.key(name) if name.endswith("_id") else found.text(name)
        fields[_RENAMED.get(name, name)] = value
    return fields


def newest_event(found: Sequence[Values]) -> list[Values]:
    """Return the rows ordered by event, the newest first; within an event the order is kept."""
    return sorted(found, key=lambda each: each.time("event_start") or _LONG_AGO, reverse=True)


def contact(found: Values, region: str) -> ContactRecord:
    """Return a contact; `region` is assumed for phones without a country code.

    If the platform has one name field, the text before its last space is the first name.
    """
    first, last = found.text("first_name"), found.text("last_name")
    if not first and not last:
        first, _, last = found.text("name").rpartition(" ")
    zone, phone = found.text("zone"), found.text("phone")
    mobiles = [number for each in found.all("mobile") if (number := addresses.phone(each, region))]
    phones = [*found.all("mobile"), *found.all("phones"), *found.all("phone")]
    return ContactRecord(
        id=found.text("id"),
        first_name=first,
        last_name=last,
        email=found.text("email"),
        mobile=mobiles[0] if mobiles else "",
        language=found.text("language").replace("-", "_"),
        zone=zone if is_zone(zone) else "",
        phone=addresses.phone(phone, region) or phone,
        phones=tuple(dict.fromkeys(phones)),
        account_id=found.key("account_id"),
        account_name=found.text("account_name"),
    )


def account(found: Values) -> AccountRecord:
    return AccountRecord(
        found.text("id"), found.text("name"), found.text("phone"), found.text("website")
    )


def _company(found: Values, contact_id: str) -> str:
    """Return the account's id, or "": in Odoo a person without a company is its own company."""
    account_id = found.key("account_id")
    return "" if account_id == contact_id else account_id


def case(found: Values) -> CaseRecord:
    return CaseRecord(
        id=found.text("id"),
        number=found.text("number"),
        subject=found.text("subject"),
        issue=found.text("issue"),
        status=found.text("status"),
        priority=found.text("priority"),
        is_closed=found.flag("is_closed"),
        created_at=found.time("created_at"),
        contact_id=found.key("contact_id"),
        contact_email=found.text("contact_email"),
        account_id=_company(found, found.key("contact_id")),
    )


def registration(found: Values) -> RegistrationRecord:
    return RegistrationRecord(
        id=found.text("id"),
        event_id=found.key("event_id"),
        event_name=found.text("event_name"),
        event_start=found.time("event_start"),
        contact_id=found.key("contact_id"),
        name=found.text("name"),
        email=found.text("email"),
        status=found.text("status"),
        is_registered=found.flag("is_registered"),
        attended=found.flag("attended"),
        ticket_type=found.text("ticket_type"),
        registered_at=found.time("created_at"),
        contact_email=found.text("contact_email"),
    )


def speaker(found: Values, contact_id: str) -> SpeakerRecord:
    return SpeakerRecord(
        id=found.text("id"),
        event_id=found.key("event_id"),
        event_name=found.text("event_name"),
        contact_id=contact_id,
        name=found.text("name"),
        email=found.text("email"),
        session_title=found.text("session_title"),
        session_start=found.time("session_start"),
        room=found.text("room"),
        status=found.text("status"),
    )


def exhibitor(found: Values, contact_id: str) -> ExhibitorRecord:
    account_id = _company(found, contact_id)
    return ExhibitorRecord(
        id=found.text("id"),
        event_id=found.key("event_id"),
        event_name=found.text("event_name"),
        account_id=account_id,
        account_name=found.text("account_name") if account_id else "",
        contact_id=contact_id,
        booth=found.text("booth"),
        level=found.text("level"),
        status=found.text("status"),
    )
