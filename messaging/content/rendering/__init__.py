"""Rendering: from a template's texts and plain data to rendered content.

Pure: no database, no settings, no organization. It raises three exceptions and no others:
`TemplateSyntax` (field, line, column, message), `RenderLimit`, `RenderFailed`.

- `compile_source(texts, partials) -> Compiled` parses a version's texts once; `check` returns all
  their problems; `compile_mjml(text) -> html` runs when a version is activated.
- `render` renders a `Compiled` with data for its channel, within `QUICK` or wider limits.
- `missing_variables(schema, variables) -> [(path, message)]`, `schema_problem(schema)`,
  `segments(text) -> SmsSize`, `text_of_html(html) -> text`.

Modules, from the whole to the parts: `compiled` (the fields of a channel), `liquid` (one text and
its partials, on python-liquid), `html` (where variables stand, plain text), `mjml`, `limits` (why
no template runs for long), `values` (what a template can hold), `source`, `variables` (the schema),
`schema_cost`, `rendered` (the results), `advice` (warnings about them).
"""

from messaging.content.rendering.advice import Advice, advise_email, advise_sms, advise_variables
from messaging.content.rendering.compiled import (
    CheckedVersion,
    Compiled,
    Failure,
    RenderedVersion,
    TemplateProblem,
    VersionToRender,
    check,
    check_partial,
    check_partials,
    check_versions,
    compile_source,
    names_of_each,
    render,
    render_email,
    render_push,
    render_sms,
    render_versions,
    used_partials,
)
from messaging.content.rendering.errors import RenderFailed, RenderLimit, TemplateSyntax
from messaging.content.rendering.html.plain_text import from_html as text_of_html
from messaging.content.rendering.limits import QUICK, Limits
from messaging.content.rendering.liquid import FILTERS, TAGS
from messaging.content.rendering.mjml import compile_mjml
from messaging.content.rendering.rendered import RenderedEmail, RenderedPush, RenderedSms
from messaging.content.rendering.schema_rules import schema_problem
from messaging.content.rendering.segments import SmsSize, non_gsm_characters, segments
from messaging.content.rendering.variables import (
    TOO_LONG,
    check_each,
    defaults,
    missing_variables,
    quick_problems,
)

__all__ = [
    "FILTERS",
    "QUICK",
    "TAGS",
    "TOO_LONG",
    "Advice",
    "CheckedVersion",
    "Compiled",
    "Failure",
    "Limits",
    "RenderFailed",
    "RenderLimit",
    "RenderedEmail",
    "RenderedPush",
    "RenderedSms",
    "RenderedVersion",
    "SmsSize",
    "TemplateProblem",
    "TemplateSyntax",
    "VersionToRender",
    "advise_email",
    "advise_sms",
    "advise_variables",
    "check",
    "check_each",
    "check_partial",
    "check_partials",
    "check_versions",
    "compile_mjml",
    "compile_source",
    "defaults",
    "missing_variables",
    "names_of_each",
    "non_gsm_characters",
    "quick_problems",
    "render",
    "render_email",
    "render_push",
    "render_sms",
    "render_versions",
    "schema_problem",
    "segments",
    "text_of_html",
    "used_partials",
]
