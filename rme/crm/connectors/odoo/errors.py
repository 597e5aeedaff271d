"""Platform errors from Odoo's responses.

An error response is an HTTP status and a JSON object. Its `name` is the exception's; its `debug` is
a traceback, which is dropped. An unknown field is 500 builtins.ValueError; a missing model is 404
werkzeug.exceptions.NotFound. A missing parent is 404 odoo.exceptions.MissingError, or 422
odoo.exceptions.ValidationError if only the database checks it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rme.crm.connectors.base import (
    Duplicate,
    MappingWrong,
    PlatformAway,
    PlatformError,
    PlatformRefused,
    UnknownParent,
)

_MISSING = re.compile(r"\(Record: [a-z0-9_.]+\(([0-9]+),")
_FIELD_MESSAGES = ("Invalid field", "Cannot convert", "Unknown field")
"""How messages about a field of a model begin."""


@dataclass(frozen=True, slots=True)
class Parent:
    """A record that a new one refers to: our field, Odoo's field, and the id."""

    name: str
    root: str
    key: str


def error_of(status: int, error: Mapping[str, object], parents: Sequence[Parent]) -> PlatformError:
    """Return the platform error for an error response. `parents`: those of a record to create."""
    name = str(error.get("name", "")).rpartition(".")[2]
    message = str(error.get("message", ""))
    if missing_parent := _missing(name, message, parents):
        return UnknownParent(missing_parent)
    if name == "UniqueViolation":
        return Duplicate("")
    if name in ("AccessDenied", "AccessError", "SessionExpiredException"):
        return PlatformRefused()
    if status in (404, 422) or message.startswith(_FIELD_MESSAGES):
        return MappingWrong()
    return PlatformAway()


def _missing(name: str, message: str, parents: Sequence[Parent]) -> str:
    """Return our field for the parent that does not exist, or "".

    The message names its id. A violated constraint has the message of a deletion, which ends with
    the field in parentheses.
    """
    match = _MISSING.search(message) if name == "MissingError" else None
    for parent in parents:
        if match and match[1] == parent.key:
            return parent.name
        if name == "ValidationError" and f"({parent.root})" in message:
            return parent.name
    return ""
