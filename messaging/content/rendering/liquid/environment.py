"""python-liquid with strict limits: its environment, tags and nodes.

The parser, tags and expressions are python-liquid's. Look-up, output, buffers, loops and filters
are replaced through its extension points (a tag's `node_class`, a template's context in
`context.py`, the registers of tags and filters), so that each is charged to the `RenderMeter`.
"""

import re
from collections.abc import Iterable
from functools import partial
from typing import ClassVar, Protocol, TextIO, cast

from liquid import Environment, RenderContext
from liquid.ast import Node
from liquid.builtin.expressions.arguments import KeywordArgument
from liquid.builtin.expressions.primitive import RangeLiteral, StringLiteral, parse_primitive
from liquid.builtin.output import Output, OutputNode
from liquid.builtin.tags.cycle_tag import CycleNode, CycleTag
from liquid.builtin.tags.echo_tag import EchoTag
from liquid.exceptions import LiquidSyntaxError
from liquid.expression import Expression
from liquid.stream import TokenStream
from liquid.tag import Tag
from liquid.token import TOKEN_FOR, TOKEN_TAG, TOKEN_WITH, Token

from messaging.content.rendering.errors import RenderLimit
from messaging.content.rendering.html.url_schemes import safe_url
from messaging.content.rendering.limits import DATA_LIMIT, LIST_LIMIT
from messaging.content.rendering.liquid.context import Context
from messaging.content.rendering.liquid.filters import OPTIONS, bounded
from messaging.content.rendering.values import html_of, text_of, weigh

TAGS = frozenset(
    [
        *("#", "assign", "break", "capture", "case", "comment", "content", "continue", "cycle"),
        *("decrement", "echo", "for", "if", "ifchanged", "illegal", "increment", "liquid"),
        *("output", "render", "tablerow", "unless"),
    ]
)
"""The known tags. `render` loads partials of the organization and nothing else."""


_PARTIAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class BoundedRange(RangeLiteral):
    """A range of bounded length: `(1..100000000) | join` would run for a minute.

    The parser always makes `RangeLiteral`s; `audit.py` turns them into these.
    """

    __slots__ = ()

    def evaluate(self, context: RenderContext) -> range:
        start = _to_integer(self.start.evaluate(context))
        stop = _to_integer(self.stop.evaluate(context))
        if stop - start >= LIST_LIMIT:
            raise RenderLimit(f"a range of more than {LIST_LIMIT}")
        cast(Context, context).meter.spend(max(stop - start, 0) >> 4)
        return range(start, stop + 1) if start <= stop else range(0)


def _to_integer(value: object) -> int:
    """Return a range's end as python-liquid does: 0 for what is not a number."""
    try:
        return int(str(value)[:40]) if isinstance(value, str) else int(cast(int, value))
    except (ValueError, TypeError, OverflowError):
        return 0


def _charge_parts(value: object, context: RenderContext) -> None:
    """Charge the parts of a list or mapping that is written."""
    if isinstance(value, list | tuple | dict):
        cast(Context, context).meter.spend(weigh(value, DATA_LIMIT) >> 5)


class BoundedOutputNode(OutputNode):
    """`{{ … }}`: the value as text, escaped in HTML, and a safe URL where HTML expects a URL."""

    __slots__ = ("address",)

    def __init__(self, token: Token, expression: Expression) -> None:
        super().__init__(token, expression)
        self.address = False

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        value = self.expression.evaluate(context)
        if type(value) is not str:
            _charge_parts(value, context)
        if not context.autoescape:
            return buffer.write(text_of(value))
        return buffer.write(html_of(safe_url(text_of(value)) if self.address else value))


class BoundedCycleNode(CycleNode):
    """`cycle`, without python-liquid's key, which is a text of all arguments."""

    __slots__ = ()

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        group = text_of(self.group.evaluate(context)) if self.group else str(self)
        turn = context.cycle(group, len(self.args))
        # Another cycle of the same group may have more arguments.
        value = self.args[turn % len(self.args)].evaluate(context)
        _charge_parts(value, context)
        return buffer.write(html_of(value) if context.autoescape else text_of(value))


class ParsedPartial(Protocol):
    """A parsed partial, as `text.Text` is."""

    def write(self, context: Context, buffer: TextIO) -> None: ...


class RenderNode(Node):
    """`{% render 'footer', year: 2026 %}`: a partial, which sees only its arguments."""

    __slots__ = ("arguments", "name", "partial")
    partial: ParsedPartial
    """Set after parsing (`text.py`)."""

    def __init__(self, token: Token, name: str, arguments: list[KeywordArgument]) -> None:
        super().__init__(token)
        self.name = name
        self.arguments = arguments
        self.blank = False

    def expressions(self) -> Iterable[Expression]:
        return [argument.value for argument in self.arguments]

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        outer = cast(Context, context)
        outer.meter.spend(10)
        arguments = {argument.name: argument.value.evaluate(outer) for argument in self.arguments}
        inner = Context(outer.template, data=arguments, meter=outer.meter, missing=outer.missing)
        self.partial.write(inner, buffer)
        outer.meter.store(-sum(inner.weights.values()))  # the partial's own variables are gone
        return 1


class RenderTag(Tag):
    name = "render"
    block = False

    def parse(self, stream: TokenStream) -> RenderNode:
        token = stream.eat(TOKEN_TAG)
        tokens = stream.into_inner(tag=token, eat=False)
        name = parse_primitive(self.env, tokens)
        if not isinstance(name, StringLiteral) or not _PARTIAL.fullmatch(name.value):
            raise LiquidSyntaxError("a partial's name stands in quotes", token=token)
        if tokens.current.kind in (TOKEN_FOR, TOKEN_WITH):
            message = f"'render' knows no '{tokens.current.kind}': give values by name"
            raise LiquidSyntaxError(message, token=token)
        return RenderNode(token, name.value, KeywordArgument.parse(self.env, tokens))


class BoundedOutputTag(Output):
    node_class = BoundedOutputNode


class BoundedEchoTag(EchoTag):
    node_class = BoundedOutputNode  # type: ignore[assignment]  # typed as their own class


class BoundedCycleTag(CycleTag):
    node_class = BoundedCycleNode


class BoundedEnvironment(Environment):
    """Liquid for untrusted templates: they see only their data, within limits.

    python-liquid's own limits on loops, output and names are off; the meter replaces them.
    """

    block_nesting_limit: ClassVar[int] = 20
    context_depth_limit: ClassVar[int] = 60

    def __init__(self, *, html: bool) -> None:
        super().__init__(autoescape=html)
        for tag in (BoundedOutputTag, BoundedEchoTag, BoundedCycleTag, RenderTag):
            self.add_tag(tag)
        self.tags = {name: tag for name, tag in self.tags.items() if name in TAGS}
        self.filters = bounded(
            {
                name: partial(function, environment=self)
                if getattr(function, "with_environment", False)
                else function
                for name, function in self.filters.items()
            },
            html=html,
        )
        self.options = OPTIONS


TEXT = BoundedEnvironment(html=False)
HTML = BoundedEnvironment(html=True)
