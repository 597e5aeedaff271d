"""How much several transports have under way to each host together.

A transport bounds what it has under way itself; a process that sends by several threads has several
transports: a host that hangs must not hold up all that they have.
"""

import threading
from collections import Counter

from rme.transport.addresses import Origin


class HostLimits:
    """Places for requests under way, counted by host. Thread-safe."""

    def __init__(self) -> None:
        self._taken: Counter[Origin] = Counter()
        self._lock = threading.Lock()

    def take(self, where: Origin, most: int) -> bool:
        """Take a place of a host's; return whether one was free."""
        with self._lock:
            if self._taken[where] >= most:
                return False
            self._taken[where] += 1
            return True

    def free(self, where: Origin) -> None:
        """Return a place."""
        with self._lock:
            self._taken[where] -= 1
            if self._taken[where] <= 0:
                del self._taken[where]
