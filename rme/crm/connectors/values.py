"""What stands in a row of a platform's, as ours: whichever way it writes nothing, times and links.

Salesforce gives null, nested objects and `2026-01-02T03:04:05.000+0000`; Odoo gives false,
`[id, label]` and `2026-01-02 03:04:05` in UTC.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rme.crm.mapping import ObjectMapping

Row = Mapping[str, Any]

_YES = frozenset({"true", "yes", "y", "1"})


@dataclass(frozen=True, slots=True)
class Values:
    """The fields of one row by our names, through its mapping."""

    mapped: ObjectMapping
    row: Row

    def text(self, name: str) -> str:
        """Give the first of a field's values that is not empty, in our words."""
        for path in self.mapped.fields.get(name, ()):
            if found := _text(_walk(self.row, path)):
                return str(self.mapped.translated(name, found)) if self._words(name) else found
        return ""

    def all(self, name: str) -> tuple[str, ...]:
        """Give all values of a field that are not empty, each once."""
        found = (_text(_walk(self.row, path)) for path in self.mapped.fields.get(name, ()))
        return tuple(dict.fromkeys(each for each in found if each))

    def key(self, name: str) -> str:
        """Give the id of the record that a field refers to."""
        for path in self.mapped.fields.get(name, ()):
            if found := _key(_walk(self.row, path)):
                return found
        return ""

    def flag(self, name: str) -> bool:
        """Say whether a field holds; what is empty does not."""
        for path in self.mapped.fields.get(name, ()):
            raw = _walk(self.row, path)
            if text := "true" if raw is True else _text(raw):
                said = self.mapped.translated(name, text)
                return said if isinstance(said, bool) else str(said).strip().lower() in _YES
        return False

    def time(self, name: str) -> datetime | None:
        """Give a time; a date is its midnight, and what has no zone is UTC."""
        try:
            read = datetime.fromisoformat(self.text(name))
        except ValueError:
            return None
        return read if read.tzinfo else read.replace(tzinfo=UTC)

    def _words(self, name: str) -> bool:
        return name in self.mapped.values


def _walk(row: Any, path: str) -> Any:
    for step in path.split("."):
        if not isinstance(row, Mapping):
            return None
        row = row.get(step)
    return row


def _text(value: Any) -> str:
    match value:
        case None | False:
            return ""
        case True:
            return "true"
        case str():
            return value.replace("\0", "").strip()
        case float() if value.is_integer():
            return str(int(value))
        case int() | float():
            return str(value)
        case [_, label]:
            return _text(label)
        case Mapping():
            return _text(value.get("display_name") or value.get("Name"))
    return ""


def _key(value: Any) -> str:
    match value:
        case [key, _]:
            return _text(key)
        case Mapping():
            return _text(value.get("id") or value.get("Id"))
    return _text(value)
