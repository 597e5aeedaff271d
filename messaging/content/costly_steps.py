"""Slow steps on a version: they run as errands, on the budget of its organization.

Nothing interrupts the native code that compiles MJML, a schema may have many patterns to compile,
and Liquid renders for up to a quarter of a second. If `organization_id` is None, no caller waits (a
worker), so the step runs here and without a budget.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from django.utils.translation import gettext, gettext_noop

from messaging.content import rendering
from rme.core.process.errands import ERRANDS, Overrun

CHECK_SECONDS = 10.0
"""CPU time for all versions of one check."""
RENDER_SECONDS = 2.0
TOO_LONG = gettext_noop("takes too long to check")
_SMALL_SCHEMA = 2_000
_SMALL_TEXT = 20_000
_FEW_BRACES = 100
"""Texts of that size, with as many braces of Liquid, are parsed within a few milliseconds."""

Version = tuple[Mapping[str, Any], Mapping[str, str]]
"""The texts of a version with its schema, and the organization's partials."""


def check_versions(
    organization_id: str | None, versions: Sequence[Version]
) -> list[rendering.CheckedVersion]:
    """Return the problems that prevent each version's activation. Raises RateLimited."""
    if organization_id is None or not any(map(_is_costly, versions)):
        return rendering.check_versions(versions)
    try:
        return ERRANDS.run(organization_id, CHECK_SECONDS, rendering.check_versions, versions)
    except Overrun:
        return [rendering.CheckedVersion([_too_long(texts)]) for texts, _ in versions]


def _is_costly(version: Version) -> bool:
    texts, partials = version
    schema = texts.get("variables") or {}
    try:
        encoded = orjson.dumps(schema)
    except (TypeError, RecursionError):
        return False  # not a schema, which the check reports
    if texts.get("mjml") or b'"pattern"' in encoded or len(encoded) > _SMALL_SCHEMA:
        return True
    sources = [value for value in texts.values() if isinstance(value, str)]
    data = map(str, (texts.get("data") or {}).values())
    return _is_long([*sources, *data, *partials.values()])


def _is_long(sources: Sequence[str]) -> bool:
    length, braces = sum(map(len, sources)), sum(source.count("{") for source in sources)
    return length > _SMALL_TEXT or braces > _FEW_BRACES


def _too_long(texts: Mapping[str, Any]) -> rendering.TemplateProblem:
    return rendering.TemplateProblem(
        "mjml" if texts.get("mjml") else "variables", gettext(TOO_LONG)
    )


def compile_mjml(organization_id: str, source: str) -> str:
    """Return the HTML of an MJML source. Raises TemplateSyntax, RateLimited."""
    try:
        return ERRANDS.run(organization_id, CHECK_SECONDS, rendering.compile_mjml, source)
    except Overrun:
        raise rendering.TemplateSyntax(gettext(TOO_LONG), field="mjml") from None


def check_partials(
    organization_id: str, partials: Sequence[tuple[str, Mapping[str, str]]]
) -> list[list[rendering.TemplateProblem]]:
    """Return the problems of partials, each with all of the organization. Raises RateLimited."""
    if not any(_is_long([text, *other_partials.values()]) for text, other_partials in partials):
        return rendering.check_partials(partials)
    try:
        return ERRANDS.run(organization_id, CHECK_SECONDS, rendering.check_partials, partials)
    except Overrun:
        return [[rendering.TemplateProblem("text", gettext(TOO_LONG))] for _ in partials]


def names_of_each(
    organization_id: str, versions: Sequence[Version]
) -> list[frozenset[str | None] | None]:
    """Return the variables that each version's texts look up; None if they don't parse.

    Raises RateLimited.
    """
    if not any(map(_is_costly, versions)):
        return rendering.names_of_each(versions)
    try:
        return ERRANDS.run(organization_id, CHECK_SECONDS, rendering.names_of_each, versions)
    except Overrun:
        return [None for _ in versions]


def render(organization_id: str, version: rendering.VersionToRender) -> rendering.RenderedVersion:
    """Render a version. Raises TemplateSyntax, RenderFailed, RenderLimit, RateLimited."""
    (rendered,) = render_each(organization_id, [version])
    if isinstance(rendered, Exception):
        raise rendered
    return rendered


def render_each(
    organization_id: str, versions: Sequence[rendering.VersionToRender]
) -> list[rendering.RenderedVersion | rendering.Failure]:
    """Render versions; return why one has no content in its place. Raises RateLimited."""
    seconds = min(RENDER_SECONDS * len(versions), CHECK_SECONDS)
    try:
        return ERRANDS.run(organization_id, seconds, rendering.render_versions, versions)
    except Overrun:
        return [rendering.RenderLimit(gettext("the template takes too long")) for _ in versions]
