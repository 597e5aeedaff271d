"""Sample values of a template's variables, and their fields in a form; both come of the schema.

A field stands for one plain value. Its path leads there, like a JSON pointer: `/guest/name`, and
`/items/0/price` for the first one of a list of objects.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext

from rme.crm.connectors.records import ContactRecord

PERSON = ContactRecord(
    id="00000000-0000-7000-8000-000000000000",
    first_name="Ada",
    last_name="Lovelace",
    email="ada@example.com",
    mobile="+12125550100",
    language="en_GB",
    zone="Europe/London",
)
"""The recipient of a preview without a contact."""
DEPTH = 5
FIELDS = 200
Rule = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class SampleField:
    """A plain value of the variables, or a list of such.

    `kind`: text, integer, number, boolean, choice, list (of texts) or numbers.
    """

    path: str
    label: str
    kind: str
    value: object
    """The sample with which the field begins; of a list its items, one a line."""
    choices: Sequence[str] = ()
    is_required: bool = False


def variables(schema: Rule) -> dict[str, object]:
    """Return sample values of a schema's variables: examples, defaults, or their names."""
    return {name: _sample(name, rule) for name, rule, _ in _properties(schema)}


def with_missing(schema: Rule, names: Sequence[str]) -> dict[str, object]:
    """Return a schema's properties with a text for each variable that only the texts name."""
    declared = {name: rule for name, rule, _ in _properties(schema)}
    added = {name: {"type": "string"} for name in names if name.isidentifier()}
    return {**schema, "properties": {**added, **declared}}


def fields(schema: Rule) -> list[SampleField]:
    """Return the fields of all plain values that a schema describes."""
    result = [
        field
        for name, rule, required in _properties(schema)
        for field in _fields(
            _Place(f"/{_escaped(name)}", name, required), rule, _sample(name, rule)
        )
    ]
    return result[:FIELDS]


def filled(schema: Rule, typed: Mapping[str, object]) -> dict[str, object]:
    """Return the variables by what stands in the fields; an empty field has no value.

    Raise ValueError, with the label and the reason, for what is not a number.
    """
    values: dict[str, object] = {}
    for field in fields(schema):
        value = _value(field, typed.get(field.path, field.value))
        if value not in (None, ""):
            _set(values, field.path, value)
    return values


def number(text: str, *, is_whole: bool) -> int | float:
    """Return a number that JSON can hold. Raise ValueError for any other text."""
    value = int(text) if is_whole else float(text)
    fits = -(1 << 63) <= value < 1 << 64 if isinstance(value, int) else math.isfinite(value)
    if not fits:
        raise ValueError(text)
    return value


def _properties(schema: Rule) -> Iterator[tuple[str, Rule, bool]]:
    """Yield the properties of a schema: the name, the rule, and whether it is required."""
    properties, required = schema.get("properties"), schema.get("required")
    names = required if isinstance(required, list) else []
    for name, rule in properties.items() if isinstance(properties, dict) else ():
        yield name, rule if isinstance(rule, dict) else {}, name in names


def _sample(name: str, rule: Rule) -> object:
    examples, choices = rule.get("examples"), rule.get("enum")
    if isinstance(examples, list) and examples:
        return examples[0]
    if "default" in rule:
        return rule["default"]
    if isinstance(choices, list) and choices:
        return choices[0]
    match rule.get("type"):
        case "integer":
            return 1
        case "number":
            return 1.5
        case "boolean":
            return True
        case "array":
            items = rule.get("items")
            return [_sample(name, items)] if isinstance(items, dict) else []
        case "object":
            return {
                each: _sample(each, property_rule) for each, property_rule, _ in _properties(rule)
            }
    return f"[{name}]"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value stands, and what it is called."""

    path: str
    label: str
    is_required: bool
    depth: int = DEPTH

    def inner(self, name: str, label: str, is_required: bool) -> "_Place":
        return _Place(f"{self.path}/{_escaped(name)}", label, is_required, self.depth - 1)


def _fields(place: _Place, rule: Rule, sample: object) -> Iterator[SampleField]:
    items = rule.get("items")
    item_rule: Rule = items if isinstance(items, dict) else {}
    if isinstance(sample, dict) and place.depth:
        rules = {name: (property_rule, needed) for name, property_rule, needed in _properties(rule)}
        for name, value in sample.items():
            property_rule, needed = rules.get(name, ({}, False))
            yield from _fields(
                place.inner(name, f"{place.label}.{name}", needed), property_rule, value
            )
    elif isinstance(sample, list) and sample and isinstance(sample[0], dict | list) and place.depth:
        for index, value in enumerate(sample):
            inner = place.inner(str(index), f"{place.label} {index + 1}", place.is_required)
            yield from _fields(inner, item_rule, value)
    else:
        yield _field(place, rule, sample)


def _field(place: _Place, rule: Rule, sample: object) -> SampleField:
    choices = rule.get("enum")
    if isinstance(choices, list) and choices and all(isinstance(each, str) for each in choices):
        return SampleField(place.path, place.label, "choice", sample, choices, place.is_required)
    value = sample
    if isinstance(sample, list):
        items = rule.get("items")
        kind = str(items.get("type", "")) if isinstance(items, dict) else ""
        kind = "numbers" if kind in ("number", "integer") else "list"
        value = "\n".join(str(each) for each in sample)
    elif rule.get("type") == "number":
        kind = "number"
    else:
        kinds: dict[type, str] = {bool: "boolean", int: "integer", float: "number"}
        kind = kinds.get(type(sample), "text")
    return SampleField(place.path, place.label, kind, value, (), place.is_required)


def _value(field: SampleField, typed: object) -> object:
    """Return the value of a field. Raise ValueError for what is not a number."""
    if field.kind == "boolean":
        return typed in (True, "true")
    text = str(typed if typed is not None else "")
    if field.kind in ("list", "numbers"):
        lines = [line for line in text.splitlines() if line.strip()]
        return [_number(field, line) for line in lines] if field.kind == "numbers" else lines
    if field.kind in ("integer", "number"):
        return _number(field, text) if text.strip() else None
    return text


def _number(field: SampleField, text: str) -> float | int:
    try:
        return number(text, is_whole=field.kind == "integer" or "." not in text)
    except ValueError:
        raise ValueError(
            gettext("%(label)s: %(text)s is not a number")
            % {"label": field.label, "text": repr(text[:40])}
        ) from None


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _set(values: dict[str, object], path: str, value: object) -> None:
    """Set a value at a path; a number in it is a place in a list, which is filled in order."""
    names = [each.replace("~1", "/").replace("~0", "~") for each in path.split("/")[1:]]
    place: dict[str, object] | list[object] = values
    for name, following in zip(names, [*names[1:], None], strict=True):
        empty: object = [] if following is not None and following.isdecimal() else {}
        if isinstance(place, list):
            if int(name) >= len(place):
                place.append(value if following is None else empty)
            inner = place[min(int(name), len(place) - 1)]
        else:
            inner = place.setdefault(name, value if following is None else empty)
        if isinstance(inner, dict | list) and following is not None:
            place = inner
