"""How much a template may have, and the meter that it pays from.

A template is somebody else's program, and Python cannot interrupt a thread from outside: signals
reach the main thread only, and an exception set from another thread waits until a running C call
returns. So the time is kept from inside, by two rules that hold in any thread:

1. No single step is long. Every value a template can hold is bounded (`values.py`), and what a
   filter is given and gives back is bounded (`filters.py`), so that no call works for more than
   some milliseconds. What could not be bounded is refused or written anew.
2. Every step pays. Each node, look-up, filter and write takes fuel by the size of what it touches;
   when the fuel is used up, the thread's CPU clock is looked at. There is no way to run a step
   without passing one of these, so a render overruns its time by one fill of fuel at most.

CPU time of this thread, not time on the wall: a busy machine must not fail a message.
"""

import time
from dataclasses import dataclass

from messaging.content.rendering.errors import RenderLimit

SOURCE_LIMIT = 500_000
"""Characters of one field's source."""
DATA_LIMIT = 1_000_000
"""Weight of all the data that a template is given (`values.weigh`)."""
LIST_LIMIT = 10_000
"""Length of a range, and of a list that a filter takes or gives."""
TEXT_LIMIT = 100_000
"""Characters of a text that a filter takes or gives."""
WEIGHT_LIMIT = 500_000
"""Weight of a list that a filter gives."""
NUMBER_LIMIT = 10**30
"""Size of a number, so that arithmetic stays arithmetic of small numbers."""

_FUEL = 100


@dataclass(frozen=True, slots=True)
class Limits:
    """What one render (all fields of one message together) may use."""

    seconds: float = 0.25
    """CPU time of the rendering thread."""
    output: int = 1 << 20
    """Characters written, captured ones included."""
    iterations: int = 10_000
    """Turns of all loops together."""
    memory: int = 2_000_000
    """Weight of what is assigned and captured."""


class Meter:
    """What is left of the limits during one render."""

    __slots__ = ("deadline", "fuel", "iterations", "memory", "output")

    def __init__(self, limits: Limits) -> None:
        self.deadline = time.thread_time() + limits.seconds
        self.fuel = _FUEL
        self.output = limits.output
        self.iterations = limits.iterations
        self.memory = limits.memory

    def spend(self, work: int) -> None:
        """Pay for a step: about one for each microsecond that it may take."""
        self.fuel -= work
        if self.fuel < 0:
            self.refuel()

    def refuel(self) -> None:
        """Look at the clock. Raises RenderLimit when the time is over."""
        if time.thread_time() > self.deadline:
            raise RenderLimit("the template takes too long")
        self.fuel = _FUEL

    def turn(self, turns: int) -> None:
        """Pay for the turns of a loop, before the first. Raises RenderLimit."""
        self.iterations -= turns
        if self.iterations < 0:
            raise RenderLimit("the template's loops have too many turns")

    def write(self, length: int) -> None:
        """Pay for output. Raises RenderLimit."""
        self.output -= length
        if self.output < 0:
            raise RenderLimit("the output is too long")
        self.fuel -= 1 + (length >> 8)  # as `spend` does, without a call: this is the hottest step
        if self.fuel < 0:
            self.refuel()

    def keep(self, weight: int) -> None:
        """Pay for what is kept in a variable (or get it back). Raises RenderLimit."""
        self.memory -= weight
        if self.memory < 0:
            raise RenderLimit("the template's own variables are too large")
