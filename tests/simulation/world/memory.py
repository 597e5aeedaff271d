"""What a process of the service has in its memory: all logical processes are in one process here.

The caches are exchanged when another process has its turn; what a process has in flight is passed
to its tasks.
"""

from collections import OrderedDict
from typing import Any

from messaging.delivery.sending_process import SendingProcess
from rme.core.cache import TtlCache
from rme.core.db import clock as database_clock
from tests.simulation.world.clock import VirtualClock
from tests.simulation.world.turns import LogicalProcess, LogicalThreads

_FOR_EVER = float("inf")
_BRIEF_SECONDS = 2.0
"""What is remembered for less time is about health, and not about the organization."""

Entries = OrderedDict[Any, tuple[float, Any]]


class Memory:
    """What a new process has remembered of the organization, and whose memory is in place."""

    def __init__(self) -> None:
        """Keep what the caches have now: so no history begins with the same ten queries."""
        self._caches = list(TtlCache._all)
        self._known: list[dict[Any, Any]] = [
            {key: value for key, (_, value) in cache._entries.items()}
            if cache.seconds >= _BRIEF_SECONDS
            else {}
            for cache in self._caches
        ]
        self._in_place: LogicalProcess | None = None

    def begin(self, process: LogicalProcess, clock: VirtualClock, *, expires: bool) -> None:
        """Give a process that starts a memory of its own, which may expire as it usually does."""
        caches: list[Entries] = []
        for cache, known in zip(self._caches, self._known, strict=True):
            if cache is database_clock._readings:
                known = {"now": (clock.moment, clock.now)}
            until = clock.now + cache.seconds if expires else _FOR_EVER
            caches.append(OrderedDict((key, (until, value)) for key, value in known.items()))
        process.memory["caches"] = caches
        process.memory["sending"] = SendingProcess(LogicalThreads(), lambda: clock.now)

    def put_in_place(self, process: LogicalProcess) -> None:
        """Exchange the memory for that of the process whose turn it is."""
        if process is self._in_place:
            return
        self._in_place = process
        caches: Any = process.memory["caches"]
        for cache, entries in zip(self._caches, caches, strict=True):
            cache._entries = entries

    def forget(self) -> None:
        """Let the next process put its own in place, whichever it is."""
        self._in_place = None
