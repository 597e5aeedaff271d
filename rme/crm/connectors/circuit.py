"""A circuit breaker for each organization's platform, one in each process.

A call to a platform that hangs occupies a thread of the web server for seconds, and messages of
all organizations wait for a thread. After a few slow failures in a row the circuit opens: calls
fail at once, except for one trial call every few seconds. Calls that are still waiting after
`LONG_SECONDS` count as failures once one has failed; otherwise each thread would wait once more.
"""

import threading
import time
from collections.abc import Callable

from rme.core.absence import Absence
from rme.core.cache import TtlCache
from rme.crm.connectors.base import PlatformError

FAILURES = 3
LONG_SECONDS = 0.8
"""A faster failure delays nobody and does not count: each call gets its own answer."""
REST_SECONDS = 5.0
"""How long an open circuit waits before it lets a trial call through."""


class Circuit:
    """The recent failures of one platform. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._absence = Absence(REST_SECONDS, clock)
        self._failures = 0
        self._in_flight: list[float] = []
        """Start times of the calls that have not ended."""
        self._last_error: type[PlatformError] = PlatformError

    def enter(self) -> None:
        """Register a call. Raise the error of the last failed call while the circuit is open.

        When the rest is over, one call passes and the circuit rests again.
        """
        with self._lock:
            now = self._clock()
            if self._is_open(now) and not self._absence.may_try():
                raise self._last_error
            self._in_flight.append(now)

    def _is_open(self, now: float) -> bool:
        slow = sum(now - start >= LONG_SECONDS for start in self._in_flight)
        return self._failures > 0 and self._failures + slow >= FAILURES

    def leave(self, seconds: float, failed: type[PlatformError] | None) -> None:
        """Record that a call ended after some seconds, with an error or with a response."""
        with self._lock:
            start = self._clock() - seconds
            self._in_flight.remove(min(self._in_flight, key=lambda began: abs(began - start)))
            if failed is None or seconds < LONG_SECONDS:
                self._failures = 0
                return
            self._failures += 1
            self._last_error = failed
            self._absence.note_failure()


_circuits: TtlCache[tuple[str, str], Circuit] = TtlCache(seconds=3600)


def circuit_of(organization_id: str, address: str) -> Circuit:
    """Return the circuit of a platform; another address is another platform."""
    circuit = _circuits.get((organization_id, address), Circuit)
    assert circuit is not None  # the loader always returns a circuit
    return circuit
