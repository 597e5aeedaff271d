"""Checks of a syntax tree before it may render, and the changes that bound it.

What is wrong here is refused when a template is activated, not when it is sent: unknown filters,
named arguments, `break` outside a loop, expressions nested too deep, and in HTML variables where
escaping does not make them safe.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, cast

from liquid.ast import Node
from liquid.builtin.expressions import FilteredExpression, Path
from liquid.builtin.expressions.arguments import KeywordArgument
from liquid.builtin.expressions.filtered import Filter
from liquid.builtin.expressions.primitive import RangeLiteral
from liquid.builtin.tags.for_tag import BreakNode, ContinueNode, ForNode
from liquid.builtin.tags.tablerow_tag import TablerowNode
from liquid.expression import Expression
from liquid.token import Token

from messaging.content.rendering.errors import syntax_at
from messaging.content.rendering.html.places import Place
from messaging.content.rendering.liquid.environment import (
    BoundedCycleNode,
    BoundedEnvironment,
    BoundedOutputNode,
    BoundedRange,
    RenderNode,
)
from messaging.content.rendering.source import Piece

_DEPTH = 50
_REFUSALS = {
    Place.BARE: "a variable stands in a tag, outside of quotes: put its place into quotes",
    Place.SCRIPT: "a variable stands in a script, where no escaping makes it safe",
}


def audit(
    nodes: Sequence[Node],
    environment: BoundedEnvironment,
    source: str,
    liquid_pieces: Sequence[Piece] = (),
    places: Sequence[Place] = (),
) -> None:
    """Check and bound a syntax tree. Raises TemplateSyntax.

    `places` holds the place in HTML of each piece of Liquid; it is empty for plain text.
    """
    starts = [piece.start for piece in liquid_pieces]
    for node, looped in walk(nodes):
        if isinstance(node, BreakNode | ContinueNode) and not looped:
            _refuse(f"'{node.token.value}' outside of a loop", node.token, source)
        variable = False
        for expression in expressions(node, source):
            variable = variable or isinstance(expression, Path)
            if type(expression) is RangeLiteral:
                expression.__class__ = BoundedRange
            if isinstance(expression, FilteredExpression):
                for used in expression.filters or ():
                    _check_filter(used, environment, source)
        if places and isinstance(node, BoundedOutputNode | BoundedCycleNode | RenderNode):
            place = places[max(bisect_right(starts, node.token.start_index) - 1, 0)]
            if isinstance(node, RenderNode) and place is not Place.CONTENT:
                _refuse("a partial stands between tags, not within one", node.token, source)
            if variable and place in _REFUSALS:
                _refuse(_REFUSALS[place], node.token, source)
            if isinstance(node, BoundedOutputNode):
                node.address = place is Place.ADDRESS


def walk(nodes: Sequence[Node]) -> Iterator[tuple[Node, bool]]:
    """Yield all nodes except those of partials, and whether each is within a loop."""
    pending = [(node, False) for node in nodes]
    while pending:
        node, looped = pending.pop()
        yield node, looped
        looped = looped or isinstance(node, ForNode | TablerowNode)
        # Only tags that load other templates use the context, and `render` here is not one.
        pending += [(child, looped) for child in node.children(cast(Any, None))]


def expressions(node: Node, source: str) -> Iterator[Expression]:
    """Yield all expressions of a node. Raises TemplateSyntax if they are nested too deep.

    The limit is low, since the depth of Python's stack at the time of sending is not known here.
    """
    pending = [(expression, 0) for expression in node.expressions()]
    while pending:
        expression, depth = pending.pop()
        if depth > _DEPTH:
            _refuse("an expression that is nested too deep", expression.token, source)
        yield expression
        pending += [(child, depth + 1) for child in expression.children()]


def _check_filter(used: Filter, environment: BoundedEnvironment, source: str) -> None:
    if used.name not in environment.filters:
        _refuse(f"unknown filter '{used.name}'", used.token, source)
    for argument in used.args:
        if not isinstance(argument, KeywordArgument):
            continue
        if argument.name not in environment.options.get(used.name, ()):
            _refuse(f"'{used.name}' has no '{argument.name}'", argument.token, source)


def _refuse(message: str, token: Token, source: str) -> NoReturn:
    raise syntax_at(message, source, token.start_index)
