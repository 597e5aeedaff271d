"""A template version, parsed; and what it renders to on each channel."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from liquid.template import BoundTemplate
from mjml import mjml2html

from messaging.rendering import liquid
from messaging.rendering.liquid import RenderFailed, TemplateSyntax
from messaging.rendering.plain_text import from_html
from messaging.rendering.variables import schema_problem

LINES = ("subject", "title", "image", "link")
TEXTS = (*LINES, "text", "html", "body")


@dataclass(frozen=True, slots=True)
class Compiled:
    """A version's parsed texts. `fixed` are values that are not templates (badge)."""

    templates: Mapping[str, BoundTemplate] = field(repr=False)
    data: Mapping[str, BoundTemplate] = field(repr=False)
    badge: int | None = None


@dataclass(frozen=True, slots=True)
class RenderedEmail:
    subject: str
    text: str
    html: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RenderedPush:
    title: str
    body: str
    data: Mapping[str, str]
    badge: int | None
    image: str
    link: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a version, and where."""

    field: str
    message: str


def compile_source(texts: Mapping[str, Any]) -> Compiled:
    """Parse a version's texts: `subject`, `text`, `html`, `title`, `body`, `data`, `badge`,
    `image`, `link`. Raises TemplateSyntax.
    """
    return Compiled(
        templates={
            name: liquid.parse(texts[name], html=name == "html")
            for name in TEXTS
            if texts.get(name)
        },
        data={
            name: liquid.parse(str(value), html=False)
            for name, value in (texts.get("data") or {}).items()
        },
        badge=texts.get("badge"),
    )


def check(texts: Mapping[str, Any]) -> list[Problem]:
    """Say all that keeps a version from becoming active."""
    problems = []
    for name in TEXTS:
        problems += _problem(name, texts.get(name) or "", html=name == "html")
    if texts.get("mjml"):
        try:
            problems += _problem("mjml", compile_mjml(texts["mjml"]), html=True)
        except TemplateSyntax as error:
            problems.append(Problem("mjml", error.message))
    for name, value in (texts.get("data") or {}).items():
        problems += _problem(f"data.{name}", str(value), html=False)
    wrong = schema_problem(texts.get("variables") or {})
    if wrong:
        problems.append(Problem("variables", wrong))
    return problems


def _problem(name: str, source: str, *, html: bool) -> list[Problem]:
    try:
        liquid.parse(source, html=html)
    except TemplateSyntax as error:
        return [Problem(name, str(error))]
    return []


_LIQUID = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)


def compile_mjml(source: str) -> str:
    """Turn MJML into HTML, with the Liquid inside it left as it is. Raises TemplateSyntax.

    Liquid is replaced by marks that mean nothing to MJML, and put back: its quotes and signs
    would not survive an XML parser. Nothing is loaded from elsewhere.
    """
    found: list[str] = []

    def mark(match: re.Match[str]) -> str:
        found.append(match.group(0))
        return f"lqd{len(found) - 1}x"

    marked = _LIQUID.sub(mark, source)
    try:
        html = str(mjml2html(marked))
    except Exception as error:
        # The binding raises its own types and plain ones alike for what does not parse.
        raise TemplateSyntax(f"MJML: {str(error)[:200]}") from error
    return re.sub(r"lqd(\d+)x", lambda match: found[int(match.group(1))], html)


def _fill(compiled: Compiled, name: str, data: Mapping[str, Any], missing: list[str]) -> str:
    template = compiled.templates.get(name)
    if template is None:
        return ""
    text, absent = liquid.render(template, data)
    missing += absent
    return " ".join(text.split()) if name in LINES else text


def render_email(compiled: Compiled, data: Mapping[str, Any]) -> RenderedEmail:
    """Fill in an email. A text of its own is made from the HTML where the version has none."""
    missing: list[str] = []
    subject = _fill(compiled, "subject", data, missing)
    text = _fill(compiled, "text", data, missing)
    html = _fill(compiled, "html", data, missing)
    if html and not text:
        text = from_html(html)
    if not text and not html:
        raise RenderFailed("the template has neither text nor HTML")
    return RenderedEmail(subject, text, html, tuple(dict.fromkeys(missing)))


def render_sms(compiled: Compiled, data: Mapping[str, Any]) -> str:
    """Fill in an SMS."""
    text = _fill(compiled, "text", data, [])
    if not text.strip():
        raise RenderFailed("the text is empty")
    return text.strip()


def render_push(compiled: Compiled, data: Mapping[str, Any]) -> RenderedPush:
    """Fill in a push; values of `data` are strings."""
    missing: list[str] = []
    extra: dict[str, str] = {}
    for name, template in compiled.data.items():
        extra[name], absent = liquid.render(template, data)
        missing += absent
    return RenderedPush(
        title=_fill(compiled, "title", data, missing),
        body=_fill(compiled, "body", data, missing),
        data=extra,
        badge=compiled.badge,
        image=_fill(compiled, "image", data, missing),
        link=_fill(compiled, "link", data, missing),
        missing=tuple(dict.fromkeys(missing)),
    )
