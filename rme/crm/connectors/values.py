"""Values of a platform's row: empty values, times and references in the form of each platform.

Salesforce returns null, nested objects and `2026-01-02T03:04:05.000+0000`; Odoo returns false,
`[id, label]` and `2026-01-02 03:04:05` in UTC.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from rme.crm.mapping import ObjectMapping

Row = Mapping[str, object]
"""A row as the platform's JSON has it, by its own field names."""

_TRUE_WORDS = frozenset({"true", "yes", "y", "1"})


@dataclass(frozen=True, slots=True)
class Values:
    """The fields of one row under our names, by its mapping."""

    mapped: ObjectMapping
    row: Row

    def text(self, name: str) -> str:
        """Return the first non-empty value of a field, translated by the mapping."""
        for path in self.mapped.fields.get(name, ()):
            if value := _text(_walk(self.row, path)):
                translated = name in self.mapped.values
                return str(self.mapped.translate(name, value)) if translated else value
        return ""

    def all(self, name: str) -> tuple[str, ...]:
        """Return all non-empty values of a field, without repeats."""
        texts = (_text(_walk(self.row, path)) for path in self.mapped.fields.get(name, ()))
        return tuple(dict.fromkeys(each for each in texts if each))

    def key(self, name: str) -> str:
        """Return the id of the record that a field refers to."""
        for path in self.mapped.fields.get(name, ()):
            if key := _key(_walk(self.row, path)):
                return key
        return ""

    def flag(self, name: str) -> bool:
        """Return whether a field is true; an empty field is false."""
        for path in self.mapped.fields.get(name, ()):
            raw = _walk(self.row, path)
            if text := "true" if raw is True else _text(raw):
                value = self.mapped.translate(name, text)
                if isinstance(value, bool):
                    return value
                return str(value).strip().lower() in _TRUE_WORDS
        return False

    def time(self, name: str) -> datetime | None:
        """Return a time, or None. A date is midnight; a time without a zone is in UTC."""
        try:
            read = datetime.fromisoformat(self.text(name))
        except ValueError:
            return None
        return read if read.tzinfo else read.replace(tzinfo=UTC)


def _walk(row: Row, path: str) -> object:
    """Return the value at a dotted path, or None."""
    value: object = row
    for step in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def _text(value: object) -> str:
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


def _key(value: object) -> str:
    match value:
        case [key, _]:
            return _text(key)
        case Mapping():
            return _text(value.get("id") or value.get("Id"))
    return _text(value)
