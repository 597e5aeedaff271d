"""Parsing and rendering one text of a template."""

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
from messaging.content.rendering.html.url_schemes import harmless
from messaging.content.rendering.limits import Meter
from messaging.content.rendering.liquid.audit import audit, expressions, walk
from messaging.content.rendering.liquid.context import Buffer, Context
from messaging.content.rendering.liquid.environment import HTML, TEXT, Call, Write
from messaging.content.rendering.source import pieces

PARTIALS_LIMIT = 50
"""How many partials one text may use."""
DEPTH_LIMIT = 5
"""How deep partials may stand in partials."""


class Variable(NamedTuple):
    """`{{ contact.first_name }}` at the top of a text, which needs none of python-liquid."""

    head: str
    rest: tuple[str, ...]
    address: bool
    node: Node


Part = str | Variable | Node


@dataclass(frozen=True, slots=True)
class Text:
    """A text with Liquid in it, parsed. `depth`: how deep partials stand in it."""

    template: BoundTemplate
    parts: tuple[Part, ...]
    literal: int
    """Characters that are written whatever the data is."""
    html: bool
    names: frozenset[str | None]
    """The variables it looks up, its own among them; None stands for any (`{{ [name] }}`)."""
    partial: str = ""
    depth: int = 0

    def write(self, context: Context, buffer: TextIO) -> None:
        """Write as a partial: into what its caller writes, with the context made for it."""
        for node in self.template.nodes:
            self.write_node(node, context, buffer)

    def write_node(self, node: Node, context: Context, buffer: TextIO) -> None:
        """Write one node. Raises RenderLimit, RenderFailed, LiquidInterrupt."""
        try:
            node.render(context, buffer)
        except (RenderLimit, RenderFailed, LiquidInterrupt):
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
            # A filter of the library that did not expect this data. What it says may hold the data.
            raise RenderFailed(f"the data does not fit ({type(error).__name__})") from error


class Partials:
    """The partials that a text may use, each parsed once for it."""

    def __init__(self, sources: Mapping[str, str], *, html: bool) -> None:
        self.sources, self.html = sources, html
        self._parsed: dict[str, Text | None] = {}

    def get(self, name: str) -> Text:
        """Give a partial, parsed. Raises PartialProblem."""
        if name not in self.sources:
            raise PartialProblem(f"there is no partial '{name}'")
        if name not in self._parsed:
            if len(self._parsed) >= PARTIALS_LIMIT:
                raise PartialProblem(f"more than {PARTIALS_LIMIT} partials")
            self._parsed[name] = None  # in hand: whoever asks for it now stands in it
            self._parsed[name] = self._parse(name)
        found = self._parsed[name]
        if found is None:
            raise PartialProblem(f"the partial '{name}' renders itself")
        return found

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
    """Parse a text; one without Liquid is given as it is.

    `partial`: it is the partial of that name. Raises TemplateSyntax; PartialProblem if all that is
    wrong with it is a partial that it uses.
    """
    if not partial and not pieces(source):
        return source
    text = _parse(source, Partials(partials or {}, html=html), partial=partial)
    if all(type(part) is str for part in text.parts):
        return "".join(cast(Sequence[str], text.parts))
    return text


def _parse(source: str, partials: Partials, *, partial: str = "") -> Text:
    found = pieces(source)
    environment = HTML if partials.html else TEXT
    try:
        template = environment.from_string(source)
    except LiquidError as error:
        raise syntax_at(_message(error), source, _position(error, source)) from error
    where = places(source, found) if partials.html else ()
    if partial and where and where[-1] is not Place.CONTENT:
        raise syntax_at("a partial ends within a tag or a comment", source, len(source))
    audit(template.nodes, environment, source, found, where)
    depth = _link(template.nodes, source, partials)
    parts = tuple(_parts(template.nodes))
    literal = sum(len(part) for part in parts if isinstance(part, str))
    names = frozenset(_names(template.nodes))
    return Text(template, parts, literal, partials.html, names, partial, depth)


def _names(nodes: Sequence[Node]) -> Iterable[str | None]:
    """Go through what is looked up; partials see nothing but their arguments, which stand here."""
    for node, _ in walk(nodes):
        for expression in expressions(node, ""):
            if isinstance(expression, Path):
                head = expression.head()
                yield head if isinstance(head, str) else None


def _link(nodes: Sequence[Node], source: str, partials: Partials) -> int:
    """Give each `render` its partial, and say how deep they are nested. Raises PartialProblem."""
    depth = 0
    for call in [node for node, _ in walk(nodes) if isinstance(node, Call)]:
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
    """Put literal text together, and take out of the tree what can be written without it."""
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
    if not isinstance(node, Write) or type(node.expression) is not FilteredExpression:
        return None
    path = node.expression.left
    if node.expression.filters or type(path) is not Path:
        return None
    head, *rest = path.path
    if isinstance(head, str) and all(isinstance(step, str) for step in rest):
        return Variable(head, tuple(cast(list[str], rest)), node.address, node)
    return None


def render(
    text: Text | str, data: Mapping[str, object], meter: Meter, holes: dict[str, None]
) -> str:
    """Render a text with plain data (`values.snapshot`). What was missing goes into `holes`.

    What most texts are made of, literal text and variables that hold a text, is written right here;
    all else, and all that comes after something else (which may have made variables of its own),
    goes through a context of python-liquid. Raises RenderLimit or RenderFailed.
    """
    if isinstance(text, str):
        return text
    meter.write(text.literal)
    buffer = Buffer(meter)
    written = buffer.parts
    context: Context | None = None
    plain = True  # nothing ran yet that could have made variables of its own
    for part in text.parts:
        if type(part) is str:
            written.append(part)
            continue
        if type(part) is Variable:
            if plain:
                value = data.get(part.head)
                for step in part.rest:
                    value = value.get(step) if type(value) is dict else None
                if type(value) is str:
                    if text.html:
                        value = escape(harmless(value) if part.address else value)
                    meter.write(len(value))
                    written.append(value)
                    continue
            part = part.node  # noqa: PLW2901
        else:
            plain = False
        if context is None:
            context = Context(text.template, data=data, meter=meter, holes=holes)
        try:
            text.write_node(cast(Node, part), context, cast(TextIO, buffer))
        except LiquidInterrupt:
            break  # a `break` in a place that `audit` took for a loop: there is nothing to leave
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
