"""One render: what python-liquid looks variables up in and writes to, paid for by its meter."""

from collections.abc import Mapping
from functools import partial
from io import StringIO
from typing import Any, TextIO, cast

from liquid import RenderContext
from liquid.template import BoundTemplate
from liquid.undefined import UNDEFINED, Undefined
from liquid.utils import ReadOnlyChainMap

from messaging.content.rendering.limits import WEIGHT_LIMIT, Meter
from messaging.content.rendering.liquid.filters import Filter
from messaging.content.rendering.values import weigh

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
        return partial(cast(Any, self.env).filters[name], self.meter)

    def raise_for_loop_limit(self, length: int = 1) -> None:
        """Pay for a loop that is about to begin. Nested ones begin, and pay, many times."""
        self.meter.turn(length)

    def get_buffer(self, buf: TextIO | None = None) -> StringIO:
        """Give a buffer to capture into; it pays the same meter."""
        return cast(StringIO, Buffer(self.meter))
