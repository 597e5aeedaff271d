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


def record(kind: str, values_of_row: Values) -> Record:
    """Return all fields of a record as JSON values, under the names that templates know."""
    values: dict[str, object] = {"type": kind}
    for name in values_of_row.mapped.fields:
        if name.startswith("find_") or name == "phones":
            continue
        value = _value(values_of_row, name)
        values[_RENAMED.get(name, name)] = (
            value.isoformat() if isinstance(value, datetime) else value
        )
    return values


def newest_event(rows: Sequence[Values]) -> list[Values]:
    """Return the rows ordered by event, the newest first; within an event the order is kept."""
    return sorted(rows, key=lambda row: row.time("event_start") or _LONG_AGO, reverse=True)


def contact(row: Values, region: str) -> ContactRecord:
    """Return a contact; `region` is assumed for phones without a country code.

    If the platform has one name field, the text before its last space is the first name.
    """
    first, last = row.text("first_name"), row.text("last_name")
    if not first and not last:
        first, _, last = row.text("name").rpartition(" ")
    zone, phone = row.text("zone"), row.text("phone")
    mobiles = [
        number for each in row.all("mobile") if (number := addresses.platform_phone(each, region))
    ]
    phones = [*row.all("mobile"), *row.all("phones"), *row.all("phone")]
    return ContactRecord(
        id=row.text("id"),
        first_name=first,
        last_name=last,
        email=row.text("email"),
        mobile=mobiles[0] if mobiles else "",
        language=row.text("language").replace("-", "_"),
        zone=zone if is_zone(zone) else "",
        phone=addresses.platform_phone(phone, region) or phone,
        phones=tuple(dict.fromkeys(phones)),
        account_id=row.key("account_id"),
        account_name=row.text("account_name"),
    )


def record_of(kind: type[T], row: Values, **values: Any) -> T:
    """Return a record of a kind. `values` are the fields that the row doesn't hold by its name."""
    for column in fields(kind):
        values.setdefault(column.name, _value(row, column.name))
    return kind(**values)


def case(row: Values) -> CaseRecord:
    contact_id = row.key("contact_id")
    return record_of(CaseRecord, row, account_id=_company(row, contact_id))


def registration(row: Values) -> RegistrationRecord:
    return record_of(RegistrationRecord, row, registered_at=row.time("created_at"))


def speaker(row: Values, contact_id: str) -> SpeakerRecord:
    return record_of(SpeakerRecord, row, contact_id=contact_id)


def exhibitor(row: Values, contact_id: str) -> ExhibitorRecord:
    account_id = _company(row, contact_id)
    name = row.text("account_name") if account_id else ""
    values = {"contact_id": contact_id, "account_id": account_id, "account_name": name}
    return record_of(ExhibitorRecord, row, **values)


def _company(row: Values, contact_id: str) -> str:
    """Return the account's id, or "": in Odoo a person without a company is its own company."""
    account_id = row.key("account_id")
    return "" if account_id == contact_id else account_id


def _value(row: Values, name: str) -> Any:
    """Return a field's value in the type that its name implies."""
    if name in _TIMES:
        return row.time(name)
    if name in _FLAGS:
        return row.flag(name)
    return row.key(name) if name.endswith("_id") else row.text(name)
