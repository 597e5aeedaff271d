"""The limits of a template, and the meter that enforces them.

A template is untrusted code, and Python cannot interrupt a thread from outside: signals reach the
main thread only, and an exception set from another thread waits until a running C call returns. So
the time is limited from within, by two rules that hold in any thread:

1. No single step is long. Every value that a template can hold is bounded (`values.py`), and so are
   the input and the result of every filter (`liquid/filters.py`), so that no call takes more than
   some milliseconds. What cannot be bounded is refused or implemented here.
2. Every step is charged. Each node, look-up, filter and write uses fuel by the size of its values;
   when the fuel is used up, the thread's CPU clock is read. No step avoids this, so a rendering
   exceeds its time by one portion of fuel at most.

Time is this thread's CPU time, not wall time: a busy machine must not fail a message. `QUICK` has
fuel instead of time, so it is the same on any machine.
"""

import time
from dataclasses import dataclass

from messaging.content.rendering.errors import RenderLimit
from messaging.domain.sentences import sentence

SOURCE_LIMIT = 500_000
"""Characters of one field's source."""
DATA_LIMIT = 1_000_000
"""Weight of the data of a template, and of a joined list (`values.weigh`)."""
LIST_LIMIT = 10_000
"""Length of a range, and of a list that a filter takes or returns."""
TEXT_LIMIT = 100_000
"""Characters of a text that a filter takes or returns."""
WEIGHT_LIMIT = 500_000
"""Weight of a list that a filter returns."""
NUMBER_LIMIT = 10**30
"""Absolute value of a number, so that arithmetic stays cheap."""

_FUEL = 100


@dataclass(frozen=True, slots=True)
class Limits:
    """What one rendering (all fields of one message together) may use."""

    seconds: float = 0.25
    """CPU time of the rendering thread."""
    fuel: int | None = None
    """What all steps may use, if no clock is to be read."""
    data: int = DATA_LIMIT
    """Weight of all data (`values.weigh`)."""
    output: int = 1 << 20
    """Characters written, including captured ones."""
    iterations: int = 10_000
    """Iterations of all loops together."""
    memory: int = 2_000_000
    """Weight of assigned and captured values."""


QUICK = Limits(fuel=20_000, data=100_000, output=1 << 17)
"""What a rendering may use that takes less than 100 ms of CPU time, whatever the template is."""


class Meter:
    """What remains of the limits during one rendering."""

    __slots__ = ("deadline", "fuel", "iterations", "memory", "output", "reads_clock")

    def __init__(self, limits: Limits) -> None:
        self.reads_clock = limits.fuel is None
        self.deadline = time.thread_time() + limits.seconds if self.reads_clock else 0.0
        self.fuel = _FUEL if limits.fuel is None else limits.fuel
        self.output = limits.output
        self.iterations = limits.iterations
        self.memory = limits.memory

    def spend(self, work: int) -> None:
        """Charge a step: about one for each microsecond that it may take."""
        self.fuel -= work
        if self.fuel < 0:
            self.refuel()

    def refuel(self) -> None:
        """Read the clock, if time counts. Raises RenderLimit if all is used up."""
        if not self.reads_clock or time.thread_time() > self.deadline:
            raise RenderLimit(sentence("the template takes too long"))
        self.fuel = _FUEL

    def iterate(self, iterations: int) -> None:
        """Charge the iterations of a loop before the first. Raises RenderLimit."""
        self.iterations -= iterations
        if self.iterations < 0:
            raise RenderLimit(sentence("the template's loops have too many turns"))

    def write(self, length: int) -> None:
        """Charge output. Raises RenderLimit."""
        self.output -= length
        if self.output < 0:
            raise RenderLimit(sentence("the output is too long"))
        self.fuel -= 1 + (
            length >> 8
        )  # as `spend` does, but without a call: this step is the most frequent
        if self.fuel < 0:
            self.refuel()

    def store(self, weight: int) -> None:
        """Charge what a variable holds; a negative weight is a refund. Raises RenderLimit."""
        self.memory -= weight
        if self.memory < 0:
            raise RenderLimit(sentence("the template's own variables are too large"))
