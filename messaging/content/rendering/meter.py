"""The meter that enforces the limits of a template: `limits` says how."""

import time

from messaging.content.rendering.errors import RenderLimit
from messaging.content.rendering.limits import Limits
from messaging.domain.sentences import sentence

_FUEL = 100


class RenderMeter:
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
            raise RenderLimit(sentence("the template's loops have too many iterations"))

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
