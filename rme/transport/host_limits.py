"""A limit on requests in flight to each host that several transports share.

A transport limits its own requests; a process that sends by several threads has several
transports, and a host that hangs must not occupy all of them.
"""

import threading
from collections import Counter

from rme.transport.addresses import Origin


class HostLimits:
    """Count requests in flight by host. Thread-safe."""

    def __init__(self) -> None:
        self._in_flight: Counter[Origin] = Counter()
        self._lock = threading.Lock()

    def acquire(self, origin: Origin, limit: int) -> bool:
        """Count one more request, unless `most` are in flight; return whether it was counted."""
        with self._lock:
            if self._in_flight[origin] >= limit:
                return False
            self._in_flight[origin] += 1
            return True

    def release(self, origin: Origin) -> None:
        """Count one request less."""
        with self._lock:
            self._in_flight[origin] -= 1
            if self._in_flight[origin] <= 0:
                del self._in_flight[origin]
