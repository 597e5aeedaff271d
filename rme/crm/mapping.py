"""The mapping of a platform's objects and fields to ours. This module is its contract.

As JSON, by kind: {"object": "Contact", "fields": {"email": ["Email", "Other_Email__c"]},
"values": {"status": {"Open": "New"}}, "filter": [["IsActive", "=", true]], "defaults":
{"LeadSource": "Bot"}}. The first non-empty field of a list counts; `phones` takes them all. A
look-up searches the fields of `find_…` instead of those of the field named after it. Dots lead to
fields of a referenced record.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

KINDS: dict[str, tuple[str, ...]] = {
    "Account": ("name", "phone", "website"),
    "Contact": (
        *("first_name", "last_name", "name", "email", "find_email", "mobile", "phone", "phones"),
        *("find_phone", "language", "zone", "account_id", "account_name"),
    ),
    "Case": (
        *("number", "subject", "issue", "status", "priority", "is_closed", "contact_id"),
        *("contact_email", "find_contact_email", "account_id"),
    ),
    "Event": ("name", "starts_at", "ends_at"),
    "EventRegistration": (
        *("event_id", "event_name", "event_start", "contact_id", "name", "email", "find_email"),
        *("contact_email", "status", "is_registered", "attended", "ticket_type"),
    ),
    "Speaker": (
        *("event_id", "event_name", "event_start", "contact_id", "find_contact_id", "name"),
        *("email", "session_title", "session_start", "room", "status"),
    ),
    "Exhibitor": (
        *("event_id", "event_name", "event_start", "account_id", "account_name"),
        *("contact_id", "find_contact_id", "booth", "level", "status"),
    ),
}
"""The fields of each kind that a mapping may name. Id and creation time need no mapping."""

NEEDED: dict[str, tuple[str, ...]] = {
    "Account": ("name",),
    "Contact": ("email",),
    "Case": ("subject", "contact_email"),
    "Event": ("name",),
    "EventRegistration": ("email",),
    "Speaker": ("contact_id",),
    "Exhibitor": ("contact_id",),
}
"""Fields that a mapped kind must have: look-ups need them."""

REQUIRED = ("Account", "Contact")
"""Kinds that every mapping has. Other kinds may be left out; look-ups then find none."""

OPERATORS = ("=", "!=")
_OBJECT = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,79}(\.[a-z0-9_]{1,79}){0,4}")
_PATH = re.compile(r"_?[A-Za-z][A-Za-z0-9_]{0,79}(\._?[A-Za-z][A-Za-z0-9_]{0,79}){0,3}")
_MAX_PATHS = 8
_MAX_TEXT = 255

Scalar = str | bool | int | float
Fields = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on every record of a kind: a field, an operator and a value."""

    path: str
    operator: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class ObjectMapping:
    """The platform's object and fields for one kind."""

    object: str
    fields: Fields
    values: Mapping[str, Mapping[str, Scalar]] = field(default_factory=dict)
    filter: tuple[Condition, ...] = ()
    defaults: Mapping[str, Scalar] = field(default_factory=dict)

    def paths(self, names: Iterable[str]) -> list[str]:
        """Return the platform's fields for some of our fields, without repeats."""
        return list(dict.fromkeys(path for name in names for path in self.fields.get(name, ())))

    def search_paths(self, name: str) -> tuple[str, ...]:
        """Return the platform's fields in which look-ups search for one of our fields."""
        return self.fields.get(f"find_{name}") or self.fields.get(name, ())

    def translate(self, name: str, value: Scalar) -> Scalar:
        """Return our value for a platform's value; the same value if there is no translation."""
        words = self.values.get(name, {})
        return words.get(str(value), words.get("*", value))


Mappings = Mapping[str, ObjectMapping]


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in a mapping. `where` is `object`, a field or a part (`values`, `filter` …)."""

    kind: str
    place: str
    message: str


class MappingInvalid(ValueError):
    """A mapping is invalid; `problems` lists all errors."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{p.kind} {p.place}: {p.message}" for p in problems))
        self.problems = problems


def parse(raw: object) -> dict[str, ObjectMapping]:
    """Parse a mapping as it is stored. Raise MappingInvalid with all its problems."""
    if not isinstance(raw, dict):
        raise MappingInvalid([Problem("", "", _("not an object"))])
    problems = [Problem(str(kind), "", _("no such kind")) for kind in raw if kind not in KINDS]
    problems += [Problem(kind, "object", "needed") for kind in REQUIRED if not raw.get(kind)]
    read = {kind: _object(kind, part, problems) for kind, part in raw.items() if kind in KINDS}
    if problems:
        raise MappingInvalid(problems)
    return {kind: mapped for kind, mapped in read.items() if mapped.object}


Report = Callable[[str, str], None]
"""Adds a problem: where, and the message."""


def _object(kind: str, raw: object, problems: list[Problem]) -> ObjectMapping:
    def report(place: str, message: str) -> None:
        problems.append(Problem(kind, place, message))

    parts: dict[str, object] = raw if isinstance(raw, dict) else {}
    if not isinstance(raw, dict):
        report("", _("not an object"))
    for name in set(parts) - {"object", "fields", "values", "filter", "defaults"}:
        report(str(name), _("no such part"))
    object_name = parts.get("object", "")
    if not isinstance(object_name, str) or (object_name and not _OBJECT.fullmatch(object_name)):
        report("object", _("not the name of an object"))
    fields = _fields(kind, parts.get("fields", {}), report)
    for name in NEEDED[kind] if object_name else ():
        if not fields.get(name) and not any(p.kind == kind and p.place == name for p in problems):
            report(name, _("needed to find records"))
    return ObjectMapping(
        object=str(object_name),
        fields=fields,
        values=_values(kind, parts.get("values", {}), report),
        filter=_filter(parts.get("filter", []), report),
        defaults=_defaults(parts.get("defaults", {}), report),
    )


def _fields(kind: str, raw: object, report: Report) -> dict[str, tuple[str, ...]]:
    fields: dict[str, tuple[str, ...]] = {}
    if not isinstance(raw, dict):
        report("fields", _("not an object"))
        return fields
    for name, paths in raw.items():
        candidates = [paths] if isinstance(paths, str) else paths
        if name not in KINDS[kind]:
            report(str(name), _("no such field"))
        elif not isinstance(candidates, list) or len(candidates) > _MAX_PATHS:
            report(name, _("a list of at most %(max_paths)s fields") % {"max_paths": _MAX_PATHS})
        elif bad := [path for path in candidates if not is_path(path)]:
            report(name, _("not the name of a field: %(name)s") % {"name": str(bad[0])[:80]})
        elif candidates:
            fields[name] = tuple(candidates)
    return fields


def is_path(value: object) -> bool:
    """Return whether a value is the name of a field or a dotted path to one."""
    return isinstance(value, str) and bool(_PATH.fullmatch(value))


def is_scalar(value: object) -> bool:
    """Return whether a value is allowed in a filter, a default or a translation."""
    if isinstance(value, str):
        return len(value) <= _MAX_TEXT and "\0" not in value and value.isprintable()
    return isinstance(value, bool | int | float) and abs(value) < 2**53


def _values(kind: str, raw: object, report: Report) -> dict[str, dict[str, Scalar]]:
    values: dict[str, dict[str, Scalar]] = {}
    for name, words in raw.items() if isinstance(raw, dict) else [("values", None)]:
        if name not in KINDS[kind] or not isinstance(words, dict):
            report(str(name), _("translations are by field, and from one value to another"))
        elif not all(isinstance(k, str) and is_scalar(v) for k, v in words.items()):
            report(name, _("a translation goes from a text to a value"))
        else:
            values[name] = dict(words)
    return values


def _filter(raw: object, report: Report) -> tuple[Condition, ...]:
    conditions: list[Condition] = []
    for term in raw if isinstance(raw, list) else [None]:
        if (
            isinstance(term, list | tuple)
            and len(term) == 3
            and is_path(term[0])
            and term[1] in OPERATORS
            and is_scalar(term[2])
        ):
            conditions.append(Condition(*term))
        else:
            report("filter", _("a condition is a field, = or !=, and a value"))
    return tuple(conditions)


def _defaults(raw: object, report: Report) -> dict[str, Scalar]:
    if isinstance(raw, dict) and all(
        is_path(path) and "." not in path and is_scalar(value) for path, value in raw.items()
    ):
        return dict(raw)
    report("defaults", _("a default is a field and a value"))
    return {}


def platform_row(mapped: ObjectMapping, values: Mapping[str, str]) -> dict[str, Scalar]:
    """Return the platform's row for a new record: defaults, then the filter, then the values given.

    A value is stored in the first of its fields. If that is a dotted path, its first step (the
    reference) gets the value, unless another value is there already. Empty values are left out.
    """
    row: dict[str, Scalar] = dict(mapped.defaults)
    row |= {c.path: c.value for c in mapped.filter if c.operator == "=" and "." not in c.path}
    set_roots: set[str] = set()
    for name, value in values.items():
        paths = mapped.fields.get(name, ())
        root = paths[0].partition(".")[0] if paths else ""
        if value and root and root not in set_roots:
            row[root] = value
            set_roots.add(root)
    return row


def problems_with(
    mappings: Mappings, described: Mapping[str, Mapping[str, str] | None]
) -> list[Problem]:
    """Return what a mapping names and the platform's own description does not have.

    `described` holds, by object, its fields with the object that each refers to ("" if none); None
    for an object that does not exist. Dotted paths are checked as far as objects are described.
    """
    problems: list[Problem] = []
    for kind, mapped in mappings.items():
        if described.get(mapped.object) is None:
            problems.append(
                Problem(
                    kind, "object", _("the platform has no %(object)s") % {"object": mapped.object}
                )
            )
            continue
        references = [(name, path) for name, paths in mapped.fields.items() for path in paths]
        references += [("defaults", path) for path in mapped.defaults]
        references += [("filter", condition.path) for condition in mapped.filter]
        for name, path in references:
            if message := _missing_step(mapped.object, path, described):
                problems.append(Problem(kind, name, message))
    return problems


def _missing_step(name: str, path: str, described: Mapping[str, Mapping[str, str] | None]) -> str:
    """Return a message for the first step of a path that is missing, or ""."""
    for step in path.split("."):
        fields = described.get(name)
        if fields is None:
            return ""
        if step not in fields:
            return _("%(name)s has no %(step)s") % {"name": name, "step": step}
        name = fields[step]
    return ""
