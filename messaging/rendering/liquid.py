"""Liquid with strict limits on time, loops, sizes and output.

python-liquid bounds loops, nesting and output, but not the work inside one filter, and a range is
only as long as its numbers say. So every filter is called through `_bounded`, which looks at what
goes in and comes out, ranges are bounded where they are evaluated, and the clock is looked at
wherever a template can spend time: at each look-up, assignment, filter and write.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from io import StringIO
from typing import Any, ClassVar

from liquid import Environment, RenderContext
from liquid.ast import Node
from liquid.builtin.expressions.primitive import RangeLiteral
from liquid.exceptions import LiquidError, LiquidInterrupt, ResourceLimitError
from liquid.expression import Expression
from liquid.template import BoundTemplate
from liquid.undefined import Undefined

from messaging.rendering.plain_text import strip_tags

SECONDS = 0.25
TEXT_LIMIT = 200_000
LIST_LIMIT = 1_000
NUMBER_LIMIT = 10**18
ARGUMENT_LIMIT = 20
SOURCE_LIMIT = 1_000_000


class TemplateSyntax(Exception):
    """A template that does not parse. `line` counts from 1."""

    def __init__(self, message: str, line: int = 1) -> None:
        self.message, self.line = message, line
        super().__init__(f"line {line}: {message}")


class RenderLimit(Exception):
    """A template that wants more time, output or loops than it may have."""


class RenderFailed(Exception):
    """A template that cannot be rendered with this data."""


class BoundedRange(RangeLiteral):
    """A range that refuses to be long: `(1..100000000) | join` would run for a minute."""

    __slots__ = ()

    def evaluate(self, context: RenderContext) -> range:
        found = super().evaluate(context)
        if len(found) > LIST_LIMIT:
            raise RenderLimit(f"a range of more than {LIST_LIMIT}")
        return found


class Buffer(StringIO):
    """Output that ends when it is too long, or when the time is over."""

    def __init__(self, limit: int, deadline: float) -> None:
        super().__init__()
        self.left = limit
        self.deadline = deadline
        self.writes = 0

    def write(self, text: str) -> int:
        self.left -= len(text)
        if self.left < 0:
            raise RenderLimit("the output is too long")
        self.writes += 1
        if self.writes & 31 == 0 and time.monotonic() > self.deadline:
            raise RenderLimit("the time is over")
        return super().write(text)


class Context(RenderContext):
    """A render context that knows its deadline and what it looked for in vain."""

    __slots__ = ("deadline", "missing")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        parent = kwargs.get("parent_context")
        self.deadline: float = parent.deadline if parent else time.monotonic() + SECONDS
        self.missing: dict[str, None] = parent.missing if parent else {}

    def _check_time(self) -> None:
        if time.monotonic() > self.deadline:
            raise RenderLimit("the time is over")

    def get(self, path: list[object], **kwargs: Any) -> object:
        self._check_time()
        found = super().get(path, **kwargs)
        if isinstance(found, Undefined):
            self.missing[".".join(str(step) for step in path)] = None
        return found

    def assign(self, key: str, val: Any) -> None:
        self._check_time()
        super().assign(key, val)

    def filter(self, name: str, token: Any) -> Callable[..., object]:
        self._check_time()
        return _bounded(name, super().filter(name, token))


def _bounded(name: str, function: Callable[..., object]) -> Callable[..., object]:
    """Call a filter with its input, its arguments and its result looked at."""

    def call(left: object, *args: object, **kwargs: object) -> object:
        _check_size(left)
        for argument in args:
            _check_size(argument)
        _check_product(name, left, args)
        result = function(left, *args, **kwargs)
        _check_size(result)
        return result

    return call


def _check_size(value: object) -> None:
    if isinstance(value, str):
        if len(value) > TEXT_LIMIT:
            raise RenderLimit(f"a text of more than {TEXT_LIMIT} characters")
    elif isinstance(value, (int, float)):
        if abs(value) > NUMBER_LIMIT:
            raise RenderLimit("a number that is too great")
    elif isinstance(value, (list, tuple, range)) and len(value) > LIST_LIMIT:
        raise RenderLimit(f"a list of more than {LIST_LIMIT}")


def _check_product(name: str, left: object, args: tuple[object, ...]) -> None:
    """Refuse, before the work is done, what multiplies its input by its arguments."""
    if name in ("replace", "replace_first", "replace_last") and len(args) == 2:
        text, wanted, new = str(left), str(args[0]), str(args[1])
        times = text.count(wanted) if wanted else len(text) + 1
        if times * len(new) > TEXT_LIMIT:
            raise RenderLimit("a replacement that grows too long")
    elif name == "join" and isinstance(left, (list, tuple, range)):
        glue = str(args[0]) if args else " "
        if len(left) * len(glue) + sum(len(str(item)) for item in left) > TEXT_LIMIT:
            raise RenderLimit("a list that joins to too long a text")
    elif name == "round" and args and isinstance(args[0], (int, float)):
        if abs(args[0]) > ARGUMENT_LIMIT:
            raise RenderLimit("too many digits")
    elif name == "date" and any(len(str(part)) > 200 for part in (left, *args)):
        raise RenderLimit("a date or its format is too long")


def strip_html(left: object) -> str:
    """Take tags out in one pass: the library's regular expression is quadratic on `<<<<`."""
    return strip_tags(str(left))


class LimitedTemplate(BoundTemplate):
    context_class = Context


class Limited(Environment):
    """Liquid for user templates: nothing outside the data, and no more than a share of anything."""

    block_nesting_limit: ClassVar[int] = 20
    context_depth_limit: ClassVar[int] = 20
    loop_iteration_limit: ClassVar[int | None] = 10_000
    local_namespace_limit: ClassVar[int | None] = 2_000_000
    output_stream_limit: ClassVar[int | None] = 1_000_000
    template_class = LimitedTemplate

    def __init__(self, *, html: bool) -> None:
        super().__init__(autoescape=html)
        # Marking a value as safe would let a caller's variable write HTML.
        self.filters.pop("safe", None)
        self.filters["strip_html"] = strip_html


TEXT = Limited(html=False)
HTML = Limited(html=True)


def parse(source: str, *, html: bool) -> BoundTemplate:
    """Parse a template. Raises TemplateSyntax."""
    if len(source) > SOURCE_LIMIT:
        raise TemplateSyntax(f"longer than {SOURCE_LIMIT} characters")
    try:
        template = (HTML if html else TEXT).from_string(source)
    except LiquidError as error:
        raise TemplateSyntax(_message(error), _line(error)) from error
    except RecursionError:
        raise TemplateSyntax("nested too deep") from None
    for expression in _expressions(template.nodes):
        if type(expression) is RangeLiteral:
            expression.__class__ = BoundedRange
    for name in _filters(template.nodes):
        if name not in template.env.filters:
            raise TemplateSyntax(f"unknown filter '{name}'")
    return template


def _expressions(nodes: list[Node]) -> Iterator[Expression]:
    """Walk through all expressions of a syntax tree."""
    context = TEXT_CONTEXT
    pending_nodes = list(nodes)
    while pending_nodes:
        node = pending_nodes.pop()
        pending_nodes += node.children(context, include_partials=False)
        pending = list(node.expressions())
        while pending:
            expression = pending.pop()
            yield expression
            pending += expression.children()


def _filters(nodes: list[Node]) -> Iterator[str]:
    for expression in _expressions(nodes):
        for found in getattr(expression, "filters", None) or ():
            yield found.name


def _message(error: LiquidError) -> str:
    return str(error.args[0] if error.args else error)[:300]


def _line(error: LiquidError) -> int:
    token = getattr(error, "token", None)
    if token is None or token.start_index < 0:
        return 1
    return int(token.source.count("\n", 0, token.start_index)) + 1


def render(template: BoundTemplate, data: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Render a template; gives the text and the variables that it looked for in vain.

    Raises RenderLimit or RenderFailed.
    """
    context = Context(template, globals=template.make_globals(data))
    buffer = Buffer(template.env.output_stream_limit or 0, context.deadline)
    try:
        template.render_with_context(context, buffer)
    except ResourceLimitError as error:
        raise RenderLimit(_message(error)) from error
    except (LiquidError, LiquidInterrupt) as error:
        raise RenderFailed(f"line {_line(error)}: {_message(error)}") from error  # type: ignore[arg-type]
    except (ArithmeticError, ValueError, TypeError, RecursionError) as error:
        # A filter of the library that did not expect this data. What it says may hold the data.
        raise RenderFailed(f"the data does not fit ({type(error).__name__})") from error
    return buffer.getvalue(), list(context.missing)


TEXT_CONTEXT = Context(TEXT.from_string(""))
