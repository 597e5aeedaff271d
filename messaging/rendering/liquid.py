"""Parsing and rendering one text of a template."""

from collections.abc import Mapping
from typing import TextIO, cast

from liquid.builtin.content import ContentNode
from liquid.exceptions import LiquidError, LiquidInterrupt, ResourceLimitError
from liquid.template import BoundTemplate

from messaging.rendering.audit import audit
from messaging.rendering.environment import HTML, TEXT, Buffer, Context
from messaging.rendering.errors import RenderFailed, RenderLimit, syntax_at
from messaging.rendering.limits import Meter
from messaging.rendering.places import places
from messaging.rendering.source import pieces


def parse(source: str, *, html: bool) -> BoundTemplate | str:
    """Parse a text; one without Liquid is given as it is. Raises TemplateSyntax."""
    found = pieces(source)
    if not found:
        return source
    environment = HTML if html else TEXT
    try:
        template = environment.from_string(source)
    except LiquidError as error:
        raise syntax_at(_message(error), source, _position(error, source)) from error
    audit(template.nodes, environment, source, found, places(source, found) if html else ())
    if all(isinstance(node, ContentNode) for node in template.nodes):
        return "".join(cast(ContentNode, node).text for node in template.nodes)
    return template


def render(
    template: BoundTemplate | str,
    data: Mapping[str, object],
    meter: Meter,
    holes: dict[str, None],
) -> str:
    """Render a text with plain data (`values.snapshot`). What was missing goes into `holes`.

    Raises RenderLimit or RenderFailed.
    """
    if isinstance(template, str):
        return template
    buffer = Buffer(meter)
    context = Context(template, data=data, meter=meter, holes=holes)
    for node in template.nodes:
        try:
            node.render(context, cast(TextIO, buffer))
        except (RenderLimit, RenderFailed):
            raise
        except ResourceLimitError as error:
            raise RenderLimit(_message(error)) from error
        except LiquidInterrupt:
            break  # a `break` in a place that `audit` took for a loop: there is nothing to leave
        except LiquidError as error:
            source, start = node.token.source, node.token.start_index
            position = error.token.start_index if error.token else start
            place = syntax_at("", source, max(position, start))
            raise RenderFailed(f"line {place.line}: {_message(error)}") from error
        except Exception as error:
            # A filter of the library that did not expect this data. What it says may hold the data.
            raise RenderFailed(f"the data does not fit ({type(error).__name__})") from error
    return buffer.getvalue()


def _message(error: LiquidError) -> str:
    if isinstance(error.__cause__, RecursionError):
        return "nested too deep"
    return str(error.args[0] if error.args else error)[:300]


def _position(error: LiquidError, source: str) -> int:
    """Say where in the source an error is: at its end where something was expected still."""
    if error.token is None:
        return 0
    return error.token.start_index if error.token.start_index >= 0 else len(source)
