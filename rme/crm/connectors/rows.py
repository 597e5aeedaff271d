"""Records built from a platform's rows."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, TypeVar

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

T = TypeVar("T", AccountRecord, CaseRecord, RegistrationRecord, SpeakerRecord, ExhibitorRecord)

_RENAMED = {"event_start": "event_starts_at"}
"""Fields that templates know by another name than look-ups do."""
_TIMES = frozenset({"created_at", "starts_at", "ends_at", "event_start", "session_start"})
_FLAGS = frozenset({"is_closed", "is_registered", "attended"})
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def record(kind: str, found: Values) -> Record:
    """Return all fields of a record as JSON values, under the names that templates know."""
    values: dict[str, object] = {"type": kind}
    for name in found.mapped.fields:
        if name.startswith("find_") or name == "phones":
            continue
        value = _value(found, name)
        values[_RENAMED.get(name, name)] = (
            value.isoformat() if isinstance(value, datetime) else value
        )
    return values


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


def record_of(kind: type[T], found: Values, **own: Any) -> T:
    """Return a record of a kind; `own` are the fields that are known, or stored by another name."""
    for each in fields(kind):
        own.setdefault(each.name, _value(found, each.name))
    return kind(**own)


def case(found: Values) -> CaseRecord:
    contact_id = found.key("contact_id")
    return record_of(CaseRecord, found, account_id=_company(found, contact_id))


def registration(found: Values) -> RegistrationRecord:
    return record_of(RegistrationRecord, found, registered_at=found.time("created_at"))


def speaker(found: Values, contact_id: str) -> SpeakerRecord:
    return record_of(SpeakerRecord, found, contact_id=contact_id)


def exhibitor(found: Values, contact_id: str) -> ExhibitorRecord:
    account_id = _company(found, contact_id)
    name = found.text("account_name") if account_id else ""
    own = {"contact_id": contact_id, "account_id": account_id, "account_name": name}
    return record_of(ExhibitorRecord, found, **own)


def _company(found: Values, contact_id: str) -> str:
    """Return the account's id, or "": in Odoo a person without a company is its own company."""
    account_id = found.key("account_id")
    return "" if account_id == contact_id else account_id


def _value(found: Values, name: str) -> Any:
    """Return a field's value in the type that its name implies."""
    if name in _TIMES:
        return found.time(name)
    if name in _FLAGS:
        return found.flag(name)
    return found.key(name) if name.endswith("_id") else found.text(name)
