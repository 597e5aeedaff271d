"""One rendering: python-liquid's context and buffer, charged to the meter."""

from collections.abc import Callable, Mapping
from functools import partial
from io import StringIO
from typing import Any, TextIO, cast

from liquid import RenderContext
from liquid.template import BoundTemplate
from liquid.undefined import UNDEFINED, Undefined
from liquid.utils import ReadOnlyChainMap

from messaging.content.rendering.limits import WEIGHT_LIMIT
from messaging.content.rendering.meter import RenderMeter
from messaging.content.rendering.values import weigh

_NONE: list[str] = []


class MissingVariable(Undefined):
    """A variable without a value. It renders to nothing, and its name is recorded when it does.

    A test with `if`, or a `default`, is not recorded: nothing is lost there.
    """

    __slots__ = ("missing",)

    def __init__(self, name: str, missing: dict[str, None]) -> None:
        super().__init__(name)
        self.missing = missing

    def __str__(self) -> str:
        self.missing[self.name] = None
        return ""

    def __len__(self) -> int:
        self.missing[self.name] = None
        return 0


class Buffer:
    """The output of a template, charged by its length."""

    __slots__ = ("meter", "parts")

    def __init__(self, meter: RenderMeter) -> None:
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
    """python-liquid's chain of namespaces, quicker for names that some of them lack."""

    def __getitem__(self, key: str) -> object:
        for namespace in self._maps:
            if key in namespace:
                return namespace[key]
        raise KeyError(key)


class Context(RenderContext):
    """One rendering: its data, its meter, and the names that had no value (`missing`)."""

    __slots__ = ("meter", "missing", "weights")

    def __init__(
        self,
        template: BoundTemplate,
        *,
        data: Mapping[str, object],
        meter: RenderMeter,
        missing: dict[str, None],
    ) -> None:
        self.meter = meter
        self.missing = missing
        self.weights: dict[str, int] = {}
        super().__init__(template, globals=data)
        self.scope = Scope(*self.scope._maps)

    @property
    def disabled_tags(self) -> list[str]:
        """Return no tags, and charge the node: every node reads this before it renders."""
        self.meter.spend(1)
        return _NONE

    @disabled_tags.setter
    def disabled_tags(self, _: list[str]) -> None: ...

    def get(self, path: list[object], *, token: object, default: object = UNDEFINED) -> object:
        """Return a variable's value. Only plain values are searched, never attributes."""
        try:
            value = self.scope[path[0]]  # type: ignore[index]  # the first step is a name
            for step in path[1:]:
                if type(value) is dict and type(step) is str and step in value:
                    value = value[step]
                else:
                    value = self.get_item(value, step)
        except (LookupError, TypeError):
            if default is not UNDEFINED:
                return default
            for step in path:
                if isinstance(step, MissingVariable):
                    return step  # in `prices[plan]` it is `plan` that has no value
            name = ".".join(str(s)[:100] if isinstance(s, str | int) else "?" for s in path)
            return MissingVariable(name, self.missing)
        # What uses the value may take time in proportion to its size. Only the first level of a
        # list is known here, so a list costs a fifth of the fuel between two checks of the clock.
        if isinstance(value, str):
            self.meter.spend(1 + (len(value) >> 6))
        else:
            self.meter.spend(20 if isinstance(value, list | dict) else 1)
        return value

    def assign(self, key: str, val: object) -> None:
        """Assign a variable of the template."""
        weight = weigh(val, WEIGHT_LIMIT * 2)
        self.meter.spend(1 + (weight >> 6))
        self.meter.store(weight - self.weights.get(key, 0))
        self.weights[key] = weight
        self.locals[key] = val

    def filter(self, name: str, token: object) -> Callable[..., object]:
        """Return a filter that is charged to this rendering's meter."""
        return partial(cast(Any, self.env).filters[name], self.meter)

    def raise_for_loop_limit(self, length: int = 1) -> None:
        """Charge a loop that is about to begin. A nested loop is charged each time it begins."""
        self.meter.iterate(length)

    def get_buffer(self, buf: TextIO | None = None) -> StringIO:
        """Return a buffer to capture into, charged to the same meter."""
        return cast(StringIO, Buffer(self.meter))
