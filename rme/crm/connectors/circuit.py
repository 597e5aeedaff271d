"""Whether a platform is worth waiting for: one circuit a process for each organization's platform.

A call to a platform that hangs holds a thread of the web server for seconds, and everybody's
messages wait for a thread. After a few calls in a row that took long and failed, callers are told
so at once, while one call every few seconds looks whether the platform is back. Once one has
failed, those that wait as long already count with it: else each thread would wait once more.
"""

import threading
import time
from collections.abc import Callable

from rme.core.cache import TtlCache
from rme.crm.connectors.base import PlatformError

FAILURES = 3
LONG_SECONDS = 0.8
"""A failure that comes sooner holds nobody up, and is the platform's own answer to each call."""
REST_SECONDS = 5.0


class Circuit:
    """What the last calls to a platform came to."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._rests_until = 0.0
        self._under_way: list[float] = []
        """When the calls that have not ended began."""
        self._last: type[PlatformError] = PlatformError

    def enter(self) -> None:
        """Raise what the last call ended in, while the platform rests; then let one try it."""
        with self._lock:
            now = self._clock()
            if self._hangs(now):
                if now < self._rests_until:
                    raise self._last
                self._rests_until = now + REST_SECONDS
            self._under_way.append(now)

    def _hangs(self, now: float) -> bool:
        waiting = sum(now - began >= LONG_SECONDS for began in self._under_way)
        return self._failures > 0 and self._failures + waiting >= FAILURES

    def leave(self, seconds: float, failed: type[PlatformError] | None) -> None:
        """Note how long a call took, and in which error it ended, if in one."""
        with self._lock:
            own = self._clock() - seconds
            self._under_way.remove(min(self._under_way, key=lambda began: abs(began - own)))
            if failed is None or seconds < LONG_SECONDS:
                self._failures = 0
                return
            self._failures += 1
            self._last = failed
            self._rests_until = self._clock() + REST_SECONDS


_circuits: TtlCache[tuple[str, str], Circuit] = TtlCache(seconds=3600)


def circuit_of(organization_id: str, address: str) -> Circuit:
    """Give the circuit of a platform; another address is another platform."""
    found = _circuits.get((organization_id, address), Circuit)
    assert found is not None  # it is made where there is none
    return found
