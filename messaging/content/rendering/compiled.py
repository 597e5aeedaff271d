"""A parsed template version, and its rendering for each channel."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from threading import Lock
from typing import Any, NamedTuple

import orjson

from messaging.content.rendering import liquid
from messaging.content.rendering.errors import (
    PartialProblem,
    RenderFailed,
    RenderLimit,
    TemplateSyntax,
)
from messaging.content.rendering.html import url_schemes
from messaging.content.rendering.html.plain_text import from_html
from messaging.content.rendering.limits import Limits
from messaging.content.rendering.liquid import Text
from messaging.content.rendering.meter import RenderMeter
from messaging.content.rendering.mjml import compile_mjml
from messaging.content.rendering.rendered import Content, RenderedEmail, RenderedPush, RenderedSms
from messaging.content.rendering.schema_rules import schema_problem
from messaging.content.rendering.segments import segments
from messaging.content.rendering.source import calls
from messaging.content.rendering.values import snapshot
from messaging.domain.sentences import sentence
from rme.core import push_data

SINGLE_LINE_FIELDS = ("subject", "title", "image", "link")
"""A line break in a subject would begin a new header."""
TEXT_FIELDS = (*SINGLE_LINE_FIELDS, "text", "html", "body")

LIMITS = Limits()
_NONE: Mapping[str, str] = {}

Field = Text | str | PartialProblem
"""A parsed text, or one without Liquid, or the problem that prevents its rendering for now."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A version's parsed texts by field."""

    texts: Mapping[str, Field] = field(repr=False)
    data: Mapping[str, Field] = field(repr=False)
    badge: int | None = None
    names: frozenset[str | None] = frozenset()
    """The variables that it looks up (`Text.names`)."""
    partials: frozenset[str] = frozenset()
    """The partials that it uses."""


@dataclass(frozen=True, slots=True)
class TemplateProblem:
    """A problem of a version and its position. Line and column count from 1."""

    field: str
    message: str
    line: int = 1
    column: int = 1


class _Cache:
    """The most recently used versions, bounded by number and by the characters of their sources."""

    def __init__(self, count: int, size: int) -> None:
        self.count, self.size, self.used = count, size, 0
        self._entries: OrderedDict[bytes, tuple[int, Compiled]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: bytes) -> Compiled | None:
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][1]

    def put(self, key: bytes, size: int, compiled: Compiled) -> None:
        with self._lock:
            replaced = self._entries.pop(key, None)
            self.used += size - (replaced[0] if replaced else 0)
            self._entries[key] = (size, compiled)
            while len(self._entries) > self.count or (self.used > self.size and self._entries):
                self.used -= self._entries.popitem(last=False)[1][0]


_cache = _Cache(count=256, size=4_000_000)


def compile_source(texts: Mapping[str, object], partials: Mapping[str, str] = _NONE) -> Compiled:
    """Parse a version's texts: `subject`, `text`, `html`, `title`, `body`, `data`, `badge`,
    `image`, `link`. Raises TemplateSyntax with the field.

    Cached: equal texts have one `Compiled`. The key is a digest of the texts and the partials that
    they use, so an edited draft is never confused with an earlier state. A field whose partial is
    missing or broken fails when it is rendered.
    """
    used = used_partials(texts, partials)
    used_texts = {name: partials[name] for name in sorted(used) if name in partials}
    fields = [texts.get(name) or "" for name in (*TEXT_FIELDS, "data", "badge")]
    source = orjson.dumps([*fields, used_texts] if used else fields)
    key = blake2b(source, digest_size=16).digest()
    compiled = _cache.get(key)
    if compiled is None:
        compiled = _compile(texts, used_texts, used)
        _cache.put(key, len(source), compiled)
    return compiled


def used_partials(texts: Mapping[str, Any], partials: Mapping[str, str]) -> frozenset[str]:
    """Return the names of the partials that a version uses, directly or not, existing or not."""
    values = (texts.get("data") or {}).values()
    pending = [texts.get(name) or "" for name in (*TEXT_FIELDS, "mjml")] + [str(v) for v in values]
    used: set[str] = set()
    while pending:
        new_names = calls(pending.pop()) - used
        used |= new_names
        pending += [partials[name] for name in new_names if name in partials]
    return frozenset(used)


def _compile(
    texts: Mapping[str, Any], partials: Mapping[str, str], used: frozenset[str]
) -> Compiled:
    def field_of(name: str, source: str) -> Field:
        try:
            return _parse(name, source, partials)
        except PartialProblem as problem:
            return problem

    fields = {name: field_of(name, texts[name]) for name in TEXT_FIELDS if texts.get(name)}
    data = {
        name: field_of(f"data.{name}", str(value))
        for name, value in (texts.get("data") or {}).items()
    }
    parsed = [text for text in (*fields.values(), *data.values()) if isinstance(text, Text)]
    names = frozenset[str | None]().union(*(text.names for text in parsed))
    return Compiled(fields, data, texts.get("badge"), names, used)


def _parse(name: str, source: str, partials: Mapping[str, str]) -> Text | str:
    try:
        return liquid.parse(source, html=name in ("html", "mjml"), partials=partials)
    except TemplateSyntax as error:
        raise error.of(name) from error


class CheckedVersion(NamedTuple):
    """The problems that prevent a version's activation, and the HTML compiled from its MJML."""

    problems: Sequence[TemplateProblem]
    html: str = ""


def check(texts: Mapping[str, Any], partials: Mapping[str, str] = _NONE) -> list[TemplateProblem]:
    """Return all problems that prevent a version from being activated."""
    return list(check_version(texts, partials).problems)


def check_version(texts: Mapping[str, Any], partials: Mapping[str, str] = _NONE) -> CheckedVersion:
    """Return all problems that prevent a version from being activated, and its HTML."""
    problems, html = [], ""
    sources = {name: texts.get(name) or "" for name in (*TEXT_FIELDS, "mjml")}
    sources |= {f"data.{key}": str(value) for key, value in (texts.get("data") or {}).items()}
    for name, source in sources.items():
        try:
            _parse(name, source, partials)
            if name == "mjml" and source:
                html = compile_mjml(source)
                _check_compiled(html, partials)
        except TemplateSyntax as error:
            problems.append(TemplateProblem(name, error.message, error.line, error.column))
    problems += [
        TemplateProblem(f"data.{key}", push_data.REASON)
        for key in texts.get("data") or {}
        if push_data.is_reserved(key)
    ]
    wrong = schema_problem(texts.get("variables") or {})
    if wrong:
        problems.append(TemplateProblem("variables", wrong))
    return CheckedVersion(problems, html)


def check_versions(
    versions: Sequence[tuple[Mapping[str, Any], Mapping[str, str]]],
) -> list[CheckedVersion]:
    """Check versions, each with its organization's partials."""
    return [check_version(texts, partials) for texts, partials in versions]


Failure = TemplateSyntax | RenderFailed | RenderLimit


class RenderedVersion(NamedTuple):
    """The content of a version, and the variables that its texts look up (`Text.names`)."""

    content: Content
    names: frozenset[str | None]


class VersionToRender(NamedTuple):
    """The texts of a version, the partials that they may use, and the data."""

    channel: str
    texts: Mapping[str, Any]
    partials: Mapping[str, str]
    data: Mapping[str, object]


def render_versions(versions: Sequence[VersionToRender]) -> list[RenderedVersion | Failure]:
    """Render versions from their texts; return why one has no content in its place."""
    return [_render_version(version) for version in versions]


def _render_version(version: VersionToRender) -> RenderedVersion | Failure:
    try:
        compiled = compile_source(version.texts, version.partials)
        return render(version.channel, compiled, version.data)
    except (TemplateSyntax, RenderFailed, RenderLimit) as error:
        return error


def render(
    channel: str, compiled: Compiled, data: Mapping[str, object], limits: Limits = LIMITS
) -> RenderedVersion:
    """Render a version for its channel. Raises RenderLimit, RenderFailed."""
    render_content = _RENDERERS[channel]
    return RenderedVersion(render_content(compiled, data, limits), compiled.names)


def names_of_each(
    versions: Sequence[tuple[Mapping[str, Any], Mapping[str, str]]],
) -> list[frozenset[str | None] | None]:
    """Return the variables that each version's texts look up; None if they don't parse."""
    return [_names(texts, partials) for texts, partials in versions]


def _names(texts: Mapping[str, Any], partials: Mapping[str, str]) -> frozenset[str | None] | None:
    try:
        return compile_source(texts, partials).names
    except TemplateSyntax:
        return None


def check_partials(pairs: Sequence[tuple[str, Mapping[str, str]]]) -> list[list[TemplateProblem]]:
    """Check partials, each with all of its organization."""
    return [check_partial(text, partials) for text, partials in pairs]


def check_partial(text: str, partials: Mapping[str, str]) -> list[TemplateProblem]:
    """Return the problem of a partial, if any: it must parse as text and as HTML."""
    for html in (False, True):
        try:
            liquid.parse(text, html=html, partials=partials, partial="this")
        except TemplateSyntax as error:
            return [TemplateProblem("text", error.message, error.line, error.column)]
    return []


def _check_compiled(html: str, partials: Mapping[str, str]) -> None:
    """Parse the HTML compiled from MJML. Its line numbers mean nothing to the author."""
    try:
        liquid.parse(html, html=True, partials=partials)
    except TemplateSyntax as error:
        raise TemplateSyntax(
            sentence("once it is compiled: %(message)s", message=error.message)
        ) from error


class _Rendering:
    """The rendering of one message: its data, and one meter for all fields."""

    __slots__ = ("data", "meter", "missing_names")

    def __init__(self, data: Mapping[str, object], limits: Limits = LIMITS) -> None:
        self.data = snapshot(data, limits.data)
        self.meter = RenderMeter(limits)
        self.missing_names: dict[str, None] = {}

    def text(self, template: Field | None) -> str:
        if template is None:
            return ""
        if isinstance(template, PartialProblem):
            raise RenderFailed(str(template))
        return liquid.render(template, self.data, self.meter, self.missing_names)

    def line(self, template: Field | None) -> str:
        return _one_line(self.text(template))

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(self.missing_names)


def _one_line(text: str) -> str:
    """Return a text on one line: each line break of any kind in Unicode becomes a space."""
    lines = text.splitlines()
    return lines[0].strip() if len(lines) == 1 else " ".join(filter(None, map(str.strip, lines)))


def render_email(
    compiled: Compiled, data: Mapping[str, object], limits: Limits = LIMITS
) -> RenderedEmail:
    """Render an email. Without a text, one is made from the HTML.

    Raises RenderLimit, RenderFailed.
    """
    render = _Rendering(data, limits)
    subject = render.line(compiled.texts.get("subject"))
    text = render.text(compiled.texts.get("text"))
    html = render.text(compiled.texts.get("html"))
    if html and not text.strip():
        text = from_html(html)
    if not text.strip() and not html.strip():
        raise RenderFailed(sentence("the email is empty: there is neither text nor HTML"))
    return RenderedEmail(subject, text, html, render.missing)


def render_sms(
    compiled: Compiled, data: Mapping[str, object], limits: Limits = LIMITS
) -> RenderedSms:
    """Render an SMS, with its size. Raises RenderLimit, RenderFailed."""
    render = _Rendering(data, limits)
    text = render.text(compiled.texts.get("text")).replace("\r\n", "\n").strip()
    if not text:
        raise RenderFailed(sentence("the text is empty"))
    return RenderedSms(text, segments(text), render.missing)


def render_push(
    compiled: Compiled, data: Mapping[str, object], limits: Limits = LIMITS
) -> RenderedPush:
    """Render a push; values of `data` are strings. Raises RenderLimit, RenderFailed."""
    render = _Rendering(data, limits)
    texts = compiled.texts
    return RenderedPush(
        title=render.line(texts.get("title")),
        body=render.text(texts.get("body")),
        data={name: render.text(template) for name, template in compiled.data.items()},
        badge=compiled.badge,
        image=_address("image", render.line(texts.get("image"))),
        link=_address("link", render.line(texts.get("link"))),
        missing=render.missing,
    )


_RENDERERS: Mapping[str, Callable[[Compiled, Mapping[str, object], Limits], Content]] = {
    "EMAIL": render_email,
    "SMS": render_sms,
    "PUSH": render_push,
}


def _address(name: str, address: str) -> str:
    if url_schemes.scheme(address) in url_schemes.ACTIVE:
        raise RenderFailed(sentence("%(name)s: an address that runs a script", name=name))
    return address
