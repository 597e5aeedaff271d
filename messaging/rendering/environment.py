"""python-liquid with strict limits: its environment, and what stands in for parts of it.

Kept from python-liquid: the parser, tags and expressions. Replaced, through the places it has for
that (a tag's `node_class`, a template's context, the registers of tags and filters): look-up,
output, buffers, loops and filters, so that each pays its `Meter` and none has to be trusted.
"""

from collections.abc import Mapping
from functools import partial
from io import StringIO
from typing import Any, ClassVar, TextIO, cast

from liquid import Environment, RenderContext
from liquid.builtin.expressions.primitive import RangeLiteral
from liquid.builtin.output import Output, OutputNode
from liquid.builtin.tags.cycle_tag import CycleNode, CycleTag
from liquid.builtin.tags.echo_tag import EchoTag
from liquid.expression import Expression
from liquid.template import BoundTemplate
from liquid.token import Token
from liquid.undefined import UNDEFINED, Undefined
from liquid.utils import ReadOnlyChainMap

from messaging.rendering.addresses import harmless
from messaging.rendering.errors import RenderLimit
from messaging.rendering.filters import OPTIONS, Filter, bounded
from messaging.rendering.limits import LIST_LIMIT, WEIGHT_LIMIT, Meter
from messaging.rendering.values import html_of, text_of, weigh

TAGS = frozenset(
    [
        "#",
        "assign",
        "break",
        "capture",
        "case",
        "comment",
        "content",
        "continue",
        "cycle",
        "decrement",
        "echo",
        "for",
        "if",
        "ifchanged",
        "illegal",
        "increment",
        "liquid",
        "output",
        "tablerow",
        "unless",
    ]
)
"""All others are unknown: nothing is included, rendered or extended from elsewhere."""


_NONE: list[str] = []


class Hole(Undefined):
    """A variable that is not there. It renders to nothing, and is remembered when it does.

    To ask for it with `if` or to give it a `default` is no loss, and is not remembered.
    """

    __slots__ = ("holes",)

    def __init__(self, name: str, holes: dict[str, None]) -> None:
        super().__init__(name)
        self.holes = holes

    def __str__(self) -> str:
        self.holes[self.name] = None
        return ""

    def __len__(self) -> int:
        self.holes[self.name] = None
        return 0


class Buffer:
    """What a template writes, paid for by its length."""

    __slots__ = ("meter", "parts")

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.parts: list[str] = []

    def write(self, text: str) -> int:
        length = len(text)
        self.meter.write(length)
        self.parts.append(text)
        return length

    def getvalue(self) -> str:
        return "".join(self.parts)


class Scope(ReadOnlyChainMap):
    """python-liquid's chain of namespaces; asks each before it looks, as a miss is not rare."""

    def __getitem__(self, key: str) -> object:
        for namespace in self._maps:
            if key in namespace:
                return namespace[key]
        raise KeyError(key)


class Context(RenderContext):
    """One render: its data, its meter, and the variables it looked for in vain (`holes`)."""

    __slots__ = ("holes", "meter", "weights")

    def __init__(
        self,
        template: BoundTemplate,
        *,
        data: Mapping[str, object],
        meter: Meter,
        holes: dict[str, None],
    ) -> None:
        self.meter = meter
        self.holes = holes
        self.weights: dict[str, int] = {}
        super().__init__(template, globals=data)
        self.scope = Scope(*self.scope._maps)

    @property
    def disabled_tags(self) -> list[str]:
        """No tag is disabled. Every node asks before it renders: this is where it pays."""
        self.meter.spend(1)
        return _NONE

    @disabled_tags.setter
    def disabled_tags(self, _: list[str]) -> None: ...

    def get(self, path: list[object], *, token: Any, default: object = UNDEFINED) -> object:
        """Look a variable up, in plain values only: nothing here asks an object for attributes."""
        try:
            found = self.scope[path[0]]  # type: ignore[index]
            for step in path[1:]:
                if type(found) is dict and type(step) is str and step in found:
                    found = found[step]
                else:
                    found = self.get_item(found, step)
        except (LookupError, TypeError):
            if default is not UNDEFINED:
                return default
            for step in path:
                if isinstance(step, Hole):
                    return step  # `prices[plan]`, and it is the plan that is not there
            name = ".".join(str(s)[:100] if isinstance(s, str | int) else "?" for s in path)
            return Hole(name, self.holes)
        # What is done with it may take as long as it is: it is compared, searched or copied. Of a
        # list only the first level is known here, so it costs a fifth of a look at the clock.
        if isinstance(found, str):
            self.meter.spend(1 + (len(found) >> 6))
        else:
            self.meter.spend(20 if isinstance(found, list | dict) else 1)
        return found

    def assign(self, key: str, val: Any) -> None:
        """Keep a variable of the template's own."""
        weight = weigh(val, WEIGHT_LIMIT * 2)
        self.meter.spend(1 + (weight >> 6))
        self.meter.keep(weight - self.weights.get(key, 0))
        self.weights[key] = weight
        self.locals[key] = val

    def filter(self, name: str, token: Any) -> Filter:
        """Give a filter that pays this render's meter."""
        return partial(cast(Limited, self.env).filters[name], self.meter)

    def raise_for_loop_limit(self, length: int = 1) -> None:
        """Pay for a loop that is about to begin. Nested ones begin, and pay, many times."""
        self.meter.turn(length)

    def get_buffer(self, buf: TextIO | None = None) -> StringIO:
        """Give a buffer to capture into; it pays the same meter."""
        return cast(StringIO, Buffer(self.meter))


class BoundedRange(RangeLiteral):
    """A range that refuses to be long: `(1..100000000) | join` would run for a minute.

    The parser makes `RangeLiteral`s and cannot be told otherwise; `audit.py` turns them into these.
    """

    __slots__ = ()

    def evaluate(self, context: RenderContext) -> range:
        start = _whole(self.start.evaluate(context))
        stop = _whole(self.stop.evaluate(context))
        if stop - start >= LIST_LIMIT:
            raise RenderLimit(f"a range of more than {LIST_LIMIT}")
        cast(Context, context).meter.spend(max(stop - start, 0) >> 4)
        return range(start, stop + 1) if start <= stop else range(0)


def _whole(value: object) -> int:
    """Give a range's end as python-liquid does: what is no number is 0."""
    try:
        return int(str(value)[:40]) if isinstance(value, str) else int(cast(int, value))
    except (ValueError, TypeError, OverflowError):
        return 0


class Write(OutputNode):
    """`{{ … }}`: the value as text, or escaped in HTML; as an address where HTML expects one."""

    __slots__ = ("address",)

    def __init__(self, token: Token, expression: Expression) -> None:
        super().__init__(token, expression)
        self.address = False

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        value = self.expression.evaluate(context)
        if not context.autoescape:
            return buffer.write(text_of(value))
        return buffer.write(html_of(harmless(text_of(value)) if self.address else value))


class Cycle(CycleNode):
    """`cycle`: python-liquid would write all its arguments into a key first."""

    __slots__ = ()

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        group = text_of(self.group.evaluate(context)) if self.group else str(self)
        turn = context.cycle(group, len(self.args))
        # Another cycle of the same group may have more arguments.
        value = self.args[turn % len(self.args)].evaluate(context)
        return buffer.write(html_of(value) if context.autoescape else text_of(value))


class WriteTag(Output):
    node_class = Write


class BoundedEcho(EchoTag):
    node_class = Write  # type: ignore[assignment]


class BoundedCycle(CycleTag):
    node_class = Cycle


class Limited(Environment):
    """Liquid for templates of users: nothing outside the data, and no more than a share of it.

    python-liquid's own limits on loops, output and names are off, as the meter's stand for them.
    """

    block_nesting_limit: ClassVar[int] = 20
    context_depth_limit: ClassVar[int] = 60

    def __init__(self, *, html: bool) -> None:
        super().__init__(autoescape=html)
        for tag in (WriteTag, BoundedEcho, BoundedCycle):
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


TEXT = Limited(html=False)
HTML = Limited(html=True)
