"""Counters of all processes, summed up in Redis (for /metrics).

The service is several processes, perhaps on several machines, and a scrape reaches one of them. So
each process keeps sums of its own and adds them to those in Redis: when something is counted, at
most once a second, and with its gauges (`process_gauges`) and at its end, so that none stay behind.
After Redis was emptied counters start at 0, as Prometheus allows.
"""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Mapping

import structlog
from redis import RedisError

from rme.core.redis.connection import redis_client

log = structlog.get_logger(__name__)

FLUSH_SECONDS = 1.0
AWAY_SECONDS = 10.0
"""The pause after Redis could not be reached; the sums are kept until then."""
KEY = "rme:counters"
_SEPARATOR = "\x1f"

Labels = tuple[str, ...]


class Counters:
    """The sums of this process that are not in Redis yet."""

    def __init__(self) -> None:
        self._sums: defaultdict[str, float] = defaultdict(float)
        self._lock = threading.Lock()
        self._next = 0.0

    def add(self, name: str, *labels: str, by: float = 1) -> None:
        """Count an occurrence. Label values must be few: each is a time series for ever."""
        self.add_each({(name, *labels): by})

    def add_each(self, amounts: Mapping[Labels, float]) -> None:
        """Count several occurrences at once; each key is a name and its label values."""
        due = False
        with self._lock:
            for key, by in amounts.items():
                self._sums[_SEPARATOR.join(key)] += by
            now = time.monotonic()
            if now >= self._next:
                self._next, due = now + FLUSH_SECONDS, True
        if due:
            self.flush()

    def flush(self) -> None:
        """Add the sums to those in Redis. Never fails: without Redis they are kept for later."""
        with self._lock:
            sums, self._sums = self._sums, defaultdict(float)
        if not sums:
            return
        try:
            pipeline = redis_client().pipeline(transaction=True)
            for field, amount in sums.items():
                pipeline.hincrbyfloat(KEY, field, amount)
            pipeline.execute()
        except RedisError as error:
            log.warning("counters.kept", error=type(error).__name__)
            with self._lock:
                self._next = time.monotonic() + AWAY_SECONDS
                for field, amount in sums.items():
                    self._sums[field] += amount

    def discard(self) -> None:
        """Drop the sums: after a fork they are the parent's to store."""
        self._sums, self._lock = defaultdict(float), threading.Lock()


_process = Counters()
add, add_each, flush = _process.add, _process.add_each, _process.flush
os.register_at_fork(after_in_child=_process.discard)


def read() -> dict[str, dict[Labels, float]]:
    """Return the sums of all processes by name and labels. Raises RedisError."""
    amounts: dict[str, dict[Labels, float]] = defaultdict(dict)
    for field, amount in redis_client().hgetall(KEY).items():
        assert isinstance(field, bytes)  # the client does not decode
        name, *labels = field.decode().split(_SEPARATOR)
        amounts[name][tuple(labels)] = float(amount)
    return dict(amounts)
