"""The history of a variant: its versions, and which variables each began or ceased to use."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from django.utils.translation import gettext as _

from messaging.content import costly_steps, drafts, rendering, samples, templates
from messaging.models import Template, TemplateVersion
from rme.core import errors

SHOWN = 20
LONGEST = 300_000
"""Characters of all texts of the versions whose variables are looked up, newest first."""
PLAIN = frozenset({"$schema", "title", "description", "type", "properties", "required"})
"""The keys of a schema whose properties are all that it declares."""
_SET = re.compile(
    r"(?:\{%-?|\bliquid\b|\n)[^\S\n]*(?:assign|capture|decrement|for|increment|tablerow)\s+([\w-]+)"
)
"""A name that Liquid sets."""
_LOOPS = frozenset({"forloop", "tablerowloop"})
_OURS = frozenset({"contact", "org", "sender", "record", "unsubscribe_url"})


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """A version, and what it changed in the variables."""

    row: TemplateVersion
    began: Sequence[str]
    ceased: Sequence[str]
    previous: int | None
    """The number of the version before it."""

    @property
    def can_return(self) -> bool:
        """Return whether it was active and is no more."""
        return self.row.state == TemplateVersion.State.ARCHIVED


def history(template: Template) -> list[HistoryLine]:
    """Return the newest versions, newest first; one query, and one for partials."""
    rows = list(template.versions.order_by("-version")[: SHOWN + 1])
    remaining = LONGEST
    short: list[TemplateVersion] = []
    for row in rows:
        row.template = template
        remaining -= sum(len(str(text)) for text in drafts.texts_of(row).values())
        if remaining > 0:
            short.append(row)
    used = variables(template.organization_id, short) + [None] * (len(rows) - len(short))
    lines = []
    for index, row in enumerate(rows[:SHOWN]):
        names = used[index]
        previous_names = used[index + 1] if index + 1 < len(rows) else None
        is_comparable = names is not None and previous_names is not None
        began = (
            sorted((names or frozenset()) - (previous_names or frozenset()))
            if is_comparable
            else []
        )
        ceased = (
            sorted((previous_names or frozenset()) - (names or frozenset()))
            if is_comparable
            else []
        )
        previous = rows[index + 1].version if index + 1 < len(rows) else None
        lines.append(HistoryLine(row, began, ceased, previous))
    return lines


def variables(organization_id: str, rows: Sequence[TemplateVersion]) -> list[frozenset[str] | None]:
    """Return the variables that each version's texts use; None if they do not parse."""
    compiled: dict[int, templates.ActiveTemplate] = {}
    for row in rows:
        with suppress(rendering.TemplateSyntax):  # of MJML
            compiled[row.pk] = templates.template_of(row)
    names = costly_steps.names_of_each(
        organization_id, [(each.texts, each.partials or {}) for each in compiled.values()]
    )
    by_version = dict(zip(compiled, names, strict=True))
    return [_without_ours(by_version.get(row.pk)) for row in rows]


def undeclared(version: TemplateVersion, names: Iterable[str | None]) -> list[str]:
    """Return the variables that a version's texts name and its schema lacks, sorted.

    A name that a text sets itself is none. Rules that aren't rows of the studio, such as `allOf`,
    may declare any: then there are none.
    """
    schema: Mapping[str, object] = version.variables or {}
    if schema.keys() - PLAIN:
        return []
    declared = schema.get("properties")
    known = declared if isinstance(declared, dict) else {}
    texts = "\n".join(map(str, drafts.texts_of(version).values()))
    ours = _OURS | _LOOPS | set(_SET.findall(texts))
    return sorted({name for name in names if name} - ours - known.keys())


def require_declared(row: TemplateVersion) -> None:
    """Raise InvalidPayload if a draft names a variable that its schema lacks."""
    (names,) = variables(row.template.organization_id, [row])
    if missing := undeclared(row, names or ()):
        problem = _("{names} isn't declared. Declare it under Variables, then publish.")
        raise errors.InvalidPayload.at("variables", problem.format(names=", ".join(missing)))


def _without_ours(names: frozenset[str | None] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(name for name in names if name) - _OURS


def completion(organization_id: str) -> dict[str, object]:
    """Return what the editor completes besides the variables of the schema."""
    person = samples.PERSON
    return {
        "filters": list(rendering.FILTERS),
        "tags": sorted(name for name in rendering.TAGS if name.isalpha() and name not in _INNER),
        "partials": sorted(templates.partials(organization_id)),
        "members": {
            "contact": [*(each for each in person._fields if each in _CONTACT), "name"],
            "org": ["id", "name", "brand_color"],
            "sender": ["domain", "local_part", "name"],
            "record": ["type", "id", "created_at"],
        },
        "names": ["unsubscribe_url"],
    }


_CONTACT = ("id", "first_name", "last_name", "email", "mobile", "language", "zone")
_INNER = ("content", "illegal", "output")
