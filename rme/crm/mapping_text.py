"""A mapping as people type it: fields separated by commas; a line for each value, filter, default.

    email:    Email, Other_Email__c
    values:   status: Open = New
    filter:   IsActive = true
    defaults: LeadSource = Bot

`true`, `false` and numbers are read as such; a text that looks like one is quoted.
"""

from collections.abc import Mapping
from typing import Any

import orjson
from django.utils.translation import gettext as _

from rme.crm.mapping import KINDS, MappingInvalid, Problem, Scalar

PARTS = ("values", "filter", "defaults")


def as_text(raw: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts for the mapping of one kind, by `object`, field and part."""
    texts = {"object": str(raw.get("object", ""))}
    for name, paths in raw.get("fields", {}).items():
        texts[name] = paths if isinstance(paths, str) else ", ".join(paths)
    texts["values"] = "\n".join(
        f"{name}: {word} = {_scalar_text(value)}"
        for name, words in raw.get("values", {}).items()
        for word, value in words.items()
    )
    texts["filter"] = "\n".join(
        f"{path} {operator} {_scalar_text(value)}"
        for path, operator, value in raw.get("filter", [])
    )
    texts["defaults"] = "\n".join(
        f"{path} = {_scalar_text(value)}" for path, value in raw.get("defaults", {}).items()
    )
    return texts


def read(kind: str, texts: Mapping[str, str]) -> dict[str, object]:
    """Return the mapping of one kind as JSON. Raise MappingInvalid for a line with an error."""
    problems: list[Problem] = []
    fields = {
        name: [part.strip() for part in texts[name].split(",") if part.strip()]
        for name in KINDS[kind]
        if texts.get(name, "").strip()
    }
    values: dict[str, dict[str, Scalar]] = {}
    for line in _lines_of(texts, "values"):
        name, colon, translation = line.partition(":")
        word, equals, value = translation.rpartition(" = ")
        if colon and equals:
            values.setdefault(name.strip(), {})[word.strip()] = _scalar(value)
        else:
            problems.append(
                Problem(
                    kind, "values", _("not like “status: Open = New”: %(line)s") % {"line": line}
                )
            )
    conditions: list[list[Scalar]] = []
    for line in _lines_of(texts, "filter"):
        path, operator, value = (*line.split(maxsplit=2), "", "", "")[:3]
        conditions.append([path, operator, _scalar(value)])
    defaults: dict[str, Scalar] = {}
    for line in _lines_of(texts, "defaults"):
        path, equals, value = line.partition("=")
        if not equals:
            problems.append(
                Problem(
                    kind, "defaults", _("not like “LeadSource = Bot”: %(line)s") % {"line": line}
                )
            )
        defaults[path.strip()] = _scalar(value)
    if problems:
        raise MappingInvalid(problems)
    parts = {"values": values, "filter": conditions, "defaults": defaults}
    return {"object": texts.get("object", "").strip(), "fields": fields, **parts}


def _lines_of(texts: Mapping[str, str], part: str) -> list[str]:
    return [line.strip() for line in texts.get(part, "").splitlines() if line.strip()]


def _scalar(text: str) -> Scalar:
    text = text.strip()
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return value if isinstance(value, str | bool | int | float) else text


def _scalar_text(value: Scalar) -> str:
    if isinstance(value, str) and _scalar(value) == value and value == value.strip():
        return value
    return orjson.dumps(value).decode()
