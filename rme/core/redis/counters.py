"""Counters of what processes did, added up in Redis (for /metrics).

The service is several processes, on several machines perhaps, and a scrape reaches one of them. So
each adds up for itself and hands its sums on once a second. What a process did last is handed on
with its next count. A Redis that was emptied begins at nothing, as counters may.
"""

import os
import threading
import time
from collections import defaultdict

import structlog
from redis import RedisError

from rme.core.redis import redis_client

log = structlog.get_logger(__name__)

FLUSH_SECONDS = 1.0
AWAY_SECONDS = 10.0
"""How long Redis is left alone after it did not take the sums: they are kept meanwhile."""
KEY = "rme:counters"
_SEPARATOR = "\x1f"

Labels = tuple[str, ...]


class Counters:
    """The sums of this process that were not handed on yet."""

    def __init__(self) -> None:
        self._sums: defaultdict[str, float] = defaultdict(float)
        self._lock = threading.Lock()
        self._next = 0.0

    def add(self, name: str, *labels: str, by: float = 1) -> None:
        """Count something. The values of labels are few: each is a time series for ever."""
        due = False
        with self._lock:
            self._sums[_SEPARATOR.join((name, *labels))] += by
            now = time.monotonic()
            if now >= self._next:
                self._next, due = now + FLUSH_SECONDS, True
        if due:
            self.flush()

    def flush(self) -> None:
        """Hand the sums on. Never fails: they are kept for later."""
        with self._lock:
            sums, self._sums = self._sums, defaultdict(float)
        if not sums:
            return
        try:
            pipeline = redis_client.client().pipeline(transaction=True)
            for field, amount in sums.items():
                pipeline.hincrbyfloat(KEY, field, amount)
            pipeline.execute()
        except RedisError as error:
            log.warning("counters.kept", error=type(error).__name__)
            with self._lock:
                self._next = time.monotonic() + AWAY_SECONDS
                for field, amount in sums.items():
                    self._sums[field] += amount

    def forget(self) -> None:
        """Drop what was not handed on: after a fork it is the parent's."""
        self._sums, self._lock = defaultdict(float), threading.Lock()


_own = Counters()
add, flush = _own.add, _own.flush
os.register_at_fork(after_in_child=_own.forget)


def read() -> dict[str, dict[Labels, float]]:
    """Give the sums of all processes by name and labels. Raises RedisError."""
    found: dict[str, dict[Labels, float]] = defaultdict(dict)
    for field, amount in redis_client.client().hgetall(KEY).items():
        assert isinstance(field, bytes)  # the client does not decode
        name, *labels = field.decode().split(_SEPARATOR)
        found[name][tuple(labels)] = float(amount)
    return dict(found)
