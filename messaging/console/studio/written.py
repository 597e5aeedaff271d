"""What stands in the studio's form: the texts, the rows of the schema, and the sample values."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from messaging.content import drafts, samples
from messaging.content.inputs import DRAFT
from messaging.models import Template, TemplateVersion
from rme.core import errors
from rme.core.http.parsing import parse, refuse_nul

KINDS: Mapping[str, Mapping[str, object]] = {
    "text": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "choice": {"type": "string"},
    "list": {"type": "array", "items": {"type": "string"}},
    "numbers": {"type": "array", "items": {"type": "number"}},
    "other": {},
}
KIND_LABELS = {
    "text": gettext_lazy("Text"),
    "integer": gettext_lazy("Whole number"),
    "number": gettext_lazy("Number"),
    "boolean": gettext_lazy("Yes or no"),
    "choice": gettext_lazy("Choice"),
    "list": gettext_lazy("List of texts"),
    "numbers": gettext_lazy("List of numbers"),
    "other": gettext_lazy("As in the schema"),
}
"""The types of variables. `other` is what only a schema describes; it is kept as it is."""
_ROW = re.compile(r"v(\d{1,4})_name")
_DATA = re.compile(r"d(\d{1,4})_name")
SAMPLE = "s:"
"""Begins the name of a sample value's field; its path follows."""


@dataclass(frozen=True, slots=True)
class SchemaRow:
    """A variable of the schema. Of a choice the example is all choices, separated by commas."""

    name: str
    kind: str
    is_required: bool
    example: str


def schema_rows(schema: Mapping[str, object]) -> list[SchemaRow]:
    """Return the variables that a schema describes."""
    properties, required = schema.get("properties"), schema.get("required")
    names = required if isinstance(required, list) else []
    return [
        SchemaRow(name, _kind(rule), name in names, _example(rule))
        for name, rule in (properties.items() if isinstance(properties, dict) else ())
    ]


def _kind(rule: object) -> str:
    if not isinstance(rule, dict):
        return "other"
    if isinstance(rule.get("enum"), list):
        texts = all(isinstance(each, str) and "," not in each for each in rule["enum"])
        return "choice" if texts else "other"
    items = rule.get("items")
    shape = {"type": rule.get("type")}
    if shape["type"] == "array":
        shape["items"] = {"type": items.get("type")} if isinstance(items, dict) else None
        if isinstance(items, dict) and items.get("type") == "integer":
            return "numbers"
    kinds = [kind for kind, kind_shape in KINDS.items() if kind_shape == shape and kind != "choice"]
    return kinds[0] if kinds else "other"


def _example(rule: object) -> str:
    if not isinstance(rule, dict):
        return ""
    if isinstance(rule.get("enum"), list):
        return ", ".join(map(str, rule["enum"]))
    examples = rule.get("examples")
    first = examples[0] if isinstance(examples, list) and examples else rule.get("default", "")
    if isinstance(first, list):
        return ", ".join(map(str, first))
    return "" if isinstance(first, dict) else _text(first)


def _text(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def schema_of(form: QueryDict, stored_schema: Mapping[str, object]) -> dict[str, object]:
    """Return the schema by the form's rows. What rows do not show is kept as it was before.

    Raise InvalidPayload, which names the row's field.
    """
    if "rows" not in form:
        return dict(stored_schema)
    stored_rules = stored_schema.get("properties")
    rules = stored_rules if isinstance(stored_rules, dict) else {}
    properties: dict[str, object] = {}
    required: list[str] = []
    for number in _numbers(form, _ROW):
        name = form.get(f"v{number}_name", "").strip()
        if not name:
            continue
        if not name.isidentifier() or name in properties:
            problem = (
                _("This name is used twice.")
                if name in properties
                else _("Use a name like order_number.")
            )
            raise errors.InvalidPayload.at(f"variables.{name}", problem)
        old = rules.get(form.get(f"v{number}_was", name))
        kind = form.get(f"v{number}_kind", "text")
        example = form.get(f"v{number}_example", "").strip()
        properties[name] = _rule(name, kind, example, old if isinstance(old, dict) else {})
        if form.get(f"v{number}_required") == "yes":
            required.append(name)
    further = {name: value for name, value in stored_schema.items() if name not in _OWN}
    if not properties and not further:
        return {}
    object_schema: dict[str, object] = {"type": "object", "properties": properties}
    return {**further, **object_schema, **({"required": required} if required else {})}


_OWN = ("type", "properties", "required")


def _rule(name: str, kind: str, example: str, old: Mapping[str, object]) -> dict[str, object]:
    """Return the rule of a variable: as it was, with what the row has changed."""
    if kind not in KINDS:
        raise errors.InvalidPayload.at(f"variables.{name}", _("Choose a type."))
    if kind == "other" or (_kind(old) == kind and _example(old) == example):
        return dict(old)
    base = dict(old) if _kind(old) == kind else _described(old)
    rule = {**base, **KINDS[kind]}
    rule.pop("default" if not example or "default" in rule else "", None)
    words = [each.strip() for each in example.split(",") if each.strip()]
    if kind == "choice":
        if not words:
            raise errors.InvalidPayload.at(f"variables.{name}", _("List the choices with commas."))
        return {**rule, "enum": words}
    rule.pop("examples", None)
    return {**rule, "examples": [_value(name, kind, example, words)]} if example else rule


def _described(old: Mapping[str, object]) -> dict[str, object]:
    return {key: old[key] for key in ("title", "description") if key in old}


def _value(name: str, kind: str, example: str, words: list[str]) -> object:
    try:
        match kind:
            case "integer":
                return samples.number(example, is_whole=True)
            case "number":
                return samples.number(example, is_whole=False)
            case "boolean":
                return example.lower() in ("yes", "true", "1")
            case "list":
                return words
            case "numbers":
                return [samples.number(each, is_whole=False) for each in words]
    except ValueError:
        raise errors.InvalidPayload.at(
            f"variables.{name}", _("The example must be a number.")
        ) from None
    return example


def texts(
    form: QueryDict, template: Template, stored_texts: Mapping[str, object]
) -> dict[str, object]:
    """Return what the form says of a version. Raise InvalidPayload, which names the fields."""
    fields: dict[str, object] = {}
    for name in drafts.BY_CHANNEL[template.channel]:
        if name == "data":
            fields[name] = dict(_data(form)) if "rows" in form else stored_texts.get("data", {})
        elif name == "badge":
            fields[name] = _badge(form.get("badge", ""))
        else:
            fields[name] = form.get(name, "").replace("\r\n", "\n")
    variables = stored_texts.get("variables")
    fields["variables"] = schema_of(form, variables if isinstance(variables, dict) else {})
    refuse_nul(fields)
    parsed = parse(DRAFT, fields).model_dump()
    return {name: parsed[name] for name in fields}


def version(
    form: QueryDict, template: Template, stored_version: TemplateVersion | None
) -> TemplateVersion:
    """Return a version that is not stored, by the form. Raise InvalidPayload."""
    return TemplateVersion(
        template=template, **texts(form, template, drafts.texts_of(stored_version))
    )


def sample_values(form: QueryDict) -> dict[str, str]:
    """Return the sample values by path."""
    return {
        name.removeprefix(SAMPLE): form.get(name, "")
        for name in form
        if isinstance(name, str) and name.startswith(SAMPLE)
    }


def seen(form: QueryDict) -> drafts.Seen:
    """Return the version that the person has before them."""
    return drafts.Seen(
        version_number(form.get("version", "")),
        version_number(form.get("revision", "")),
        form.get("anew") == "1",
    )


def version_number(text: str) -> int:
    """Return the number of a version, or 0, which none has."""
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _badge(text: str) -> int | None:
    if not text.strip():
        return None
    if not text.strip().isdecimal() or len(text) > 9:
        raise errors.InvalidPayload.at("badge", _("Enter a number."))
    return int(text)


def _data(form: QueryDict) -> Iterator[tuple[str, str]]:
    for number in _numbers(form, _DATA):
        if name := form.get(f"d{number}_name", "").strip():
            yield name, form.get(f"d{number}_text", "").replace("\r\n", "\n")


def _numbers(form: QueryDict, pattern: re.Pattern[str]) -> list[int]:
    matches = (pattern.fullmatch(name) for name in form if isinstance(name, str))
    return sorted(int(each[1]) for each in matches if each)
