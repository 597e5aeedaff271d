"""Rendering: from a template's texts and plain data to what is sent.

Pure: no database, no settings, no organization. Nothing but the three exceptions comes out.

- `compile_source(texts) -> Compiled` parses a version's texts once; `check(texts) -> [Problem]`
  says all that is wrong with them; `compile_mjml(text) -> html`.
- `render_email`, `render_sms`, `render_push` fill in a `Compiled` with data.
- `missing_variables(schema, variables) -> [(path, message)]`, `segments(text) -> SmsSize`.
"""

from messaging.rendering.compiled import (
    Compiled,
    Problem,
    RenderedEmail,
    RenderedPush,
    check,
    compile_mjml,
    compile_source,
    render_email,
    render_push,
    render_sms,
)
from messaging.rendering.liquid import RenderFailed, RenderLimit, TemplateSyntax
from messaging.rendering.segments import SmsSize, segments
from messaging.rendering.variables import missing_variables, schema_problem

__all__ = [
    "Compiled",
    "Problem",
    "RenderFailed",
    "RenderLimit",
    "RenderedEmail",
    "RenderedPush",
    "SmsSize",
    "TemplateSyntax",
    "check",
    "compile_mjml",
    "compile_source",
    "missing_variables",
    "render_email",
    "render_push",
    "render_sms",
    "schema_problem",
    "segments",
]
