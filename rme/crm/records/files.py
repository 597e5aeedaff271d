"""The columns of record files, by kind: names, and how cells are parsed.

An import accepts every file that an export wrote.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.core.exceptions import ValidationError
from django.core.validators import URLValidator
from django.db import models
from django.utils.translation import gettext as _

from rme.core import addresses, ids, zones
from rme.core.addresses import Digits
from rme.crm.models import Account, Case, Contact, Event, EventRegistration, Exhibitor, Speaker
from rme.tenants.organizations.languages import is_language


class NumberRules(NamedTuple):
    """How to read phone numbers without a country code."""

    region: str
    digits: Digits = Digits.UNSAID


Read = Callable[[str, NumberRules], Any]
"""Parses a cell. Raises ValueError, whose text is shown to people."""
EXTRA_COLUMNS = ("createdAt",)
"""Columns that an export adds, and an import ignores."""


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A column: its name in files, its column in the table, and its parser.

    `refers` is the model whose ids the column holds.
    """

    name: str
    column: str
    read: Read
    required: bool = False
    refers: type[models.Model] | None = None


# --- reading cells ------------------------------------------------------------------------------
def _text(limit: int) -> Read:
    def read(cell: str, rules: NumberRules) -> str:
        if "\0" in cell:
            raise ValueError(_("must not contain NUL characters"))
        if len(cell) > limit:
            raise ValueError(_("is longer than %(limit)s characters") % {"limit": f"{limit:,}"})
        return cell

    return read


def _email(cell: str, rules: NumberRules) -> str:
    typed = addresses.typed_email(cell)
    if typed is None:
        raise ValueError(_("is not an email address"))
    return typed


def _phone(cell: str, rules: NumberRules) -> str:
    number = addresses.valid_phone(cell, rules.region, rules.digits)
    if number is None:
        raise ValueError(addresses.phone_problem(cell, rules.region, rules.digits))
    return number


def _language(cell: str, rules: NumberRules) -> str:
    language, country = [*cell.replace("-", "_").split("_", 1), ""][:2]
    code = f"{language.lower()}_{country.upper()}" if country else language.lower()
    if not is_language(code):
        raise ValueError(_("is not a language like en_GB or de"))
    return code


def _zone(cell: str, rules: NumberRules) -> str:
    if not zones.is_zone(cell):
        raise ValueError(_("is not an IANA time zone"))
    return cell


def _url(cell: str, rules: NumberRules) -> str:
    try:
        URLValidator()(cell)
    except ValidationError:
        raise ValueError(_("is not a web address")) from None
    if len(cell) > 200:
        raise ValueError(_("is longer than 200 characters"))
    return cell


_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _boolean(cell: str, rules: NumberRules) -> bool:
    if cell.lower() not in _BOOLEANS:
        raise ValueError(_("is neither true nor false"))
    return _BOOLEANS[cell.lower()]


def _time(cell: str, rules: NumberRules) -> datetime:
    try:
        time = datetime.fromisoformat(cell)
        if time.tzinfo is None:
            raise ValueError
        return time.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(_("is not a time like 2026-01-31T12:00:00Z")) from None


def _choice(choices: type[models.TextChoices]) -> Read:
    def read(cell: str, rules: NumberRules) -> str:
        if cell not in choices.values:
            values = ", ".join(choices.values)
            raise ValueError(_("is not one of %(values)s") % {"values": values})
        return cell

    return read


def _id(cell: str, rules: NumberRules) -> str:
    if ids.parse(cell) is None:
        raise ValueError(_("does not exist"))
    return cell


# --- the table ----------------------------------------------------------------------------------
def _of(name: str, kind: type[models.Model], *, required: bool = False) -> FileColumn:
    return FileColumn(f"{name}Id", f"{name}_id", _id, required, kind)


ID = FileColumn("id", "id", _id)
_ACCOUNT, _CONTACT = _of("account", Account), _of("contact", Contact)
_EVENT = _of("event", Event, required=True)
_STATUS = FileColumn("status", "status", _text(40))

COLUMNS: Mapping[type[models.Model], tuple[FileColumn, ...]] = {
    Account: (
        ID,
        FileColumn("name", "name", _text(255), required=True),
        FileColumn("phone", "phone", _text(40)),
        FileColumn("website", "website", _url),
    ),
    Contact: (
        ID,
        FileColumn("firstName", "first_name", _text(255)),
        FileColumn("lastName", "last_name", _text(255), required=True),
        FileColumn("email", "email", _email),
        FileColumn("phone", "phone", _phone),
        FileColumn("mobile", "mobile", _phone),
        FileColumn("language", "language", _language),
        FileColumn("zone", "zone", _zone),
        _ACCOUNT,
    ),
    Case: (
        ID,
        FileColumn("number", "number", _text(20), required=True),
        FileColumn("subject", "subject", _text(255), required=True),
        FileColumn("issue", "issue", _text(32_000)),
        FileColumn("status", "status", _choice(Case.Status)),
        FileColumn("priority", "priority", _text(20)),
        _CONTACT,
        _ACCOUNT,
    ),
    Event: (
        ID,
        FileColumn("name", "name", _text(255), required=True),
        FileColumn("startsAt", "starts_at", _time, required=True),
        FileColumn("endsAt", "ends_at", _time),
    ),
    EventRegistration: (
        ID,
        _EVENT,
        _CONTACT,
        FileColumn("name", "name", _text(255), required=True),
        FileColumn("email", "email", _email, required=True),
        _STATUS,
        FileColumn("ticketType", "ticket_type", _text(100)),
        FileColumn("attended", "attended", _boolean),
    ),
    Speaker: (
        ID,
        _EVENT,
        _of("contact", Contact, required=True),
        FileColumn("sessionTitle", "session_title", _text(255)),
        FileColumn("sessionStart", "session_start", _time),
        FileColumn("room", "room", _text(100)),
        _STATUS,
    ),
    Exhibitor: (
        ID,
        _EVENT,
        _ACCOUNT,
        _CONTACT,
        FileColumn("booth", "booth", _text(40)),
        FileColumn("level", "level", _text(40)),
        _STATUS,
    ),
}
KINDS: Mapping[str, type[models.Model]] = {model.__name__: model for model in COLUMNS}


def names(model: type[models.Model]) -> tuple[str, ...]:
    """Return the names of the columns that a file of a kind may have, in order."""
    return tuple(column.name for column in COLUMNS[model])
