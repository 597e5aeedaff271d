"""Parsing and rendering one text of a template, with its partials."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TextIO, cast

from liquid.ast import Node
from liquid.builtin.content import ContentNode
from liquid.builtin.expressions import FilteredExpression, Path
from liquid.exceptions import LiquidError, LiquidInterrupt, ResourceLimitError
from liquid.template import BoundTemplate
from markupsafe import escape

from messaging.content.rendering.errors import (
    PartialProblem,
    RenderFailed,
    RenderLimit,
    TemplateSyntax,
    syntax_at,
)
from messaging.content.rendering.html.places import Place, places
from messaging.content.rendering.html.url_schemes import safe_url
from messaging.content.rendering.liquid.audit import audit, expressions, walk
from messaging.content.rendering.liquid.context import Buffer, Context
from messaging.content.rendering.liquid.environment import HTML, TEXT, BoundedOutputNode, RenderNode
from messaging.content.rendering.meter import RenderMeter
from messaging.content.rendering.source import pieces

PARTIALS_LIMIT = 50
"""The number of partials that one text may use."""
DEPTH_LIMIT = 5
"""The depth to which partials may contain partials."""


class Variable(NamedTuple):
    """A plain variable at the top level of a text, rendered without python-liquid.

    For `{{ contact.first_name }}` the head is `contact` and the path `("first_name",)`.
    """

    head: str
    path: tuple[str, ...]
    address: bool
    node: Node


Part = str | Variable | Node


@dataclass(frozen=True, slots=True)
class Text:
    """A parsed text that contains Liquid."""

    template: BoundTemplate
    parts: tuple[Part, ...]
    literal: int
    """Characters that do not depend on the data."""
    html: bool
    names: frozenset[str | None]
    """The variables that it looks up, its own included; None: a computed name (`{{ [name] }}`)."""
    partial: str = ""
    """The name of the partial that it is, if it is one."""
    depth: int = 0
    """How deep partials are nested in it."""

    def write(self, context: Context, buffer: TextIO) -> None:
        """Render as a partial into the caller's buffer, with a context of its own."""
        for node in self.template.nodes:
            self.write_node(node, context, buffer)

    def write_node(self, node: Node, context: Context, buffer: TextIO) -> None:
        """Render one node. Raises RenderLimit, RenderFailed, LiquidInterrupt."""
        try:
            node.render(context, buffer)
        except (RenderLimit, RenderFailed, LiquidInterrupt, MemoryError):
            raise
        except ResourceLimitError as error:
            raise RenderLimit(_message(error)) from error
        except LiquidError as error:
            source, start = node.token.source, node.token.start_index
            position = error.token.start_index if error.token else start
            line = syntax_at("", source, max(position, start)).line
            place = f"partial {self.partial}, line {line}" if self.partial else f"line {line}"
            raise RenderFailed(f"{place}: {_message(error)}") from error
        except Exception as error:
            # A library filter that does not accept this data. Its message may contain the data.
            raise RenderFailed(f"the data does not fit ({type(error).__name__})") from error


class Partials:
    """The partials that a text may use. Each is parsed once for it."""

    def __init__(self, sources: Mapping[str, str], *, html: bool) -> None:
        self.sources, self.html = sources, html
        self._parsed: dict[str, Text | None] = {}

    def get(self, name: str) -> Text:
        """Return a parsed partial. Raises PartialProblem."""
        if name not in self.sources:
            raise PartialProblem(f"there is no partial '{name}'")
        if name not in self._parsed:
            if len(self._parsed) >= PARTIALS_LIMIT:
                raise PartialProblem(f"more than {PARTIALS_LIMIT} partials")
            self._parsed[name] = (
                None  # being parsed: a partial that requests it now contains itself
            )
            self._parsed[name] = self._parse(name)
        text = self._parsed[name]
        if text is None:
            raise PartialProblem(f"the partial '{name}' renders itself")
        return text

    def _parse(self, name: str) -> Text:
        try:
            return _parse(self.sources[name], self, partial=name)
        except PartialProblem:
            raise
        except TemplateSyntax as error:
            raise PartialProblem(f"partial '{name}', {error}") from error


def parse(
    source: str, *, html: bool, partials: Mapping[str, str] | None = None, partial: str = ""
) -> Text | str:
    """Parse a text; one without Liquid is returned unchanged.

    `partial` is the name of the partial that the text is, if it is one. Raises TemplateSyntax, and
    PartialProblem if the only problem is a partial that the text uses.
    """
    if not partial and not pieces(source):
        return source
    text = _parse(source, Partials(partials or {}, html=html), partial=partial)
    if all(type(part) is str for part in text.parts):
        return "".join(cast(Sequence[str], text.parts))
    return text


def _parse(source: str, partials: Partials, *, partial: str = "") -> Text:
    liquid_pieces = pieces(source)
    environment = HTML if partials.html else TEXT
    try:
        template = environment.from_string(source)
    except LiquidError as error:
        raise syntax_at(_message(error), source, _position(error, source)) from error
    found_places = places(source, liquid_pieces) if partials.html else ()
    if partial and found_places and found_places[-1] is not Place.CONTENT:
        raise syntax_at("a partial ends within a tag or a comment", source, len(source))
    audit(template.nodes, environment, source, liquid_pieces, found_places)
    depth = _link_partials(template.nodes, source, partials)
    parts = tuple(_parts(template.nodes))
    literal = sum(len(part) for part in parts if isinstance(part, str))
    names = frozenset(_names(template.nodes))
    return Text(template, parts, literal, partials.html, names, partial, depth)


def _names(nodes: Sequence[Node]) -> Iterable[str | None]:
    """Yield the names that are looked up. Partials see only their arguments, which are included."""
    for node, _ in walk(nodes):
        for expression in expressions(node, ""):
            if isinstance(expression, Path):
                head = expression.head()
                yield head if isinstance(head, str) else None


def _link_partials(nodes: Sequence[Node], source: str, partials: Partials) -> int:
    """Set the partial of each `render` tag, and return the depth of nesting.

    Raises PartialProblem.
    """
    depth = 0
    for call in [node for node, _ in walk(nodes) if isinstance(node, RenderNode)]:
        try:
            call.partial = used = partials.get(call.name)
            depth = max(depth, used.depth + 1)
            if depth > DEPTH_LIMIT:
                raise PartialProblem(f"partials in partials more than {DEPTH_LIMIT} deep")
        except PartialProblem as error:
            place = syntax_at(error.message, source, call.token.start_index)
            raise PartialProblem(place.message, place.line, place.column) from error
    return depth


def _parts(nodes: Iterable[Node]) -> list[Part]:
    """Join literal text, and replace plain variables, which need no syntax tree."""
    parts: list[Part] = []
    for node in nodes:
        if isinstance(node, ContentNode):
            if parts and isinstance(parts[-1], str):
                parts[-1] += node.text
            else:
                parts.append(node.text)
        else:
            parts.append(_variable(node) or node)
    return parts


def _variable(node: Node) -> Variable | None:
    if not isinstance(node, BoundedOutputNode) or type(node.expression) is not FilteredExpression:
        return None
    path = node.expression.left
    if node.expression.filters or type(path) is not Path:
        return None
    head, *steps = path.path
    if isinstance(head, str) and all(isinstance(step, str) for step in steps):
        return Variable(head, tuple(cast(list[str], steps)), node.address, node)
    return None


def render(
    text: Text | str, data: Mapping[str, object], meter: RenderMeter, missing: dict[str, None]
) -> str:
    """Render a text with plain data (`values.snapshot`); add missing variables to `missing`.

    Literal text and variables that hold a text are written directly, since most texts have nothing
    else. Other nodes, and all that follow them (they may have assigned variables), are rendered
    with a context of python-liquid. Raises RenderLimit or RenderFailed.
    """
    if isinstance(text, str):
        return text
    meter.write(text.literal)
    buffer = Buffer(meter)
    output = buffer.parts
    context: Context | None = None
    plain = True  # no node was rendered yet that could have assigned variables
    for part in text.parts:
        if type(part) is str:
            output.append(part)
            continue
        if type(part) is Variable:
            if plain:
                value = data.get(part.head)
                for step in part.path:
                    value = value.get(step) if type(value) is dict else None
                if type(value) is str:
                    if text.html:
                        value = escape(safe_url(value) if part.address else value)
                    meter.write(len(value))
                    output.append(value)
                    continue
            node: object = part.node
        else:
            node, plain = part, False
        if context is None:
            context = Context(text.template, data=data, meter=meter, missing=missing)
        try:
            text.write_node(cast(Node, node), context, cast(TextIO, buffer))
        except LiquidInterrupt:
            break  # a `break` that `audit` took to be within a loop
    return buffer.getvalue()


def _message(error: LiquidError) -> str:
    if isinstance(error.__cause__, RecursionError):
        return "nested too deep"
    return str(error.args[0] if error.args else error)[:300]


def _position(error: LiquidError, source: str) -> int:
    """Return the position of an error in the source: its end if something more was expected."""
    if error.token is None:
        return 0
    return error.token.start_index if error.token.start_index >= 0 else len(source)
