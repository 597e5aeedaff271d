"""Redis and the broker, as far as delivery needs them: wakeups, and tasks that may get lost.

Redis is a double in memory, since keys expire there by Redis' own clock. The limits and circuits
are as if it was away: all pass, and all circuits are closed.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from rme.core.process import task_requests
from rme.core.redis import rate_limits
from tests.simulation.world.clock import VirtualClock
from tests.simulation.world.faults import Faults
from tests.simulation.world.turns import Turns

LOST = 0.1
"""How many tasks the broker loses while there are faults."""


class Broker:
    """The tasks that were requested, and the wakeups."""

    def __init__(self, clock: VirtualClock, turns: Turns, faults: Faults) -> None:
        self._clock, self._turns, self._faults = clock, turns, faults
        self.tasks: list[tuple[str, tuple[str, ...]]] = []
        self._keys: dict[str, float] = {}

    def send_task(self, name: str, arguments: tuple[str, ...], **_: object) -> None:
        """Keep a task, or lose it."""
        if self._faults.chance(LOST):
            self._turns.fault("task lost")
        else:
            self.tasks.append((name, arguments))

    def take(self, name: str, *arguments: str) -> bool:
        """Take a task, if it was requested."""
        found = (name, arguments) in self.tasks
        if found:
            self.tasks.remove((name, arguments))
        return found

    def forget(self) -> None:
        """Start empty, as after an outage: all of it is only a hint."""
        self.tasks.clear()
        self._keys.clear()

    def command(self, verb: str, key: str, *rest: object) -> int | None:
        """Do what Redis does for `SET key 1 NX PX life`, and for `DEL key`."""
        if verb == "DEL":
            return int(self._keys.pop(key, None) is not None)
        if self._keys.get(key, -1.0) > self._clock.now:
            return None
        self._keys[key] = self._clock.now + float(str(rest[-1])) / 1000
        return 1

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Stand where Redis and the broker do."""
        with ExitStack() as stack:
            stack.enter_context(patch.object(task_requests, "command", self.command))
            stack.enter_context(patch.object(task_requests, "current_app", self))
            stack.enter_context(patch.object(rate_limits.Limiter, "run", lambda *_: None))
            yield
