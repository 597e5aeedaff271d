"""Whether a platform is worth waiting for: one circuit a process for each organization's platform.

A call to a platform that hangs holds a thread of the web server for seconds, and everybody's
messages wait for a thread. After a few calls in a row that took long and failed, callers are told
so at once, while one call every few seconds looks whether the platform is back.
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
        self._last: type[PlatformError] = PlatformError

    def enter(self) -> None:
        """Raise what the last call ended in, while the platform rests; then let one try it."""
        with self._lock:
            if self._failures < FAILURES:
                return
            now = self._clock()
            if now < self._rests_until:
                raise self._last
            self._rests_until = now + REST_SECONDS

    def leave(self, seconds: float, failed: type[PlatformError] | None) -> None:
        """Note how long a call took, and in which error it ended, if in one."""
        with self._lock:
            if failed is None or seconds < LONG_SECONDS:
                self._failures = 0
                return
            self._failures += 1
            self._last = failed
            self._rests_until = self._clock() + REST_SECONDS


_circuits: TtlCache[tuple[str, str], Circuit] = TtlCache(seconds=3600)


def of(organization_id: str, address: str) -> Circuit:
    """Give the circuit of a platform; another address is another platform."""
    found = _circuits.get((organization_id, address), Circuit)
    assert found is not None  # it is made where there is none
    return found
