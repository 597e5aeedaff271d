"""What each process has now: memory, and its connections to PostgreSQL.

Each process sets its gauges every few seconds. /metrics shows their sums by host and role, and the
fullest pool of each role.
"""

import os
import socket
import time
from collections.abc import Iterable
from pathlib import Path
from typing import cast

from django.db import DEFAULT_DB_ALIAS, connections

from rme.core.db.postgresql.base import DatabaseWrapper
from rme.core.process import threads
from rme.core.telemetry.meters import Counter, Gauge

EVERY_SECONDS = 5.0
WEB, WORKER = "web", "worker"
POOL_ERRORS = Counter(
    "rme_database_pool_errors_total", "Waits that ended without a database connection.", ["role"]
)
POOL_WAITS = Counter(
    "rme_database_pool_wait_seconds_total",
    "Time spent on waiting for database connections.",
    ["role"],
)
PROCESSES = Gauge("rme_processes", "Processes that run, by role and host.", ["role", "host"])
MEMORY = Gauge(
    "rme_process_memory_bytes",
    "Resident memory of these processes together.",
    ["role", "host"],
)
WAITING = Gauge(
    "rme_database_pool_waiting", "Threads that wait for a connection.", ["role", "host"]
)
CONNECTIONS = Gauge(
    "rme_database_connections", "Connections to PostgreSQL.", ["role", "host", "state"]
)
FULLEST = Gauge(
    "rme_database_pool_used_ratio",
    "The share of its connections that the process with the fullest pool uses.",
    ["role"],
    mode="livemax",
)
QUEUE_WORKERS = Gauge("rme_queue_workers", "Worker processes that consume a queue.", ["queue"])
_PAGE = os.sysconf("SC_PAGE_SIZE")


class _PoolSums:
    """The sums that this process's pool has counted, as far as they are handed on."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start at 0: after a fork the child has a pool of its own."""
        self._errors = self._waited = 0

    def hand_on(self, role: str, errors: int, waited_ms: int) -> None:
        """Add what the pool has counted since the last call. A new pool starts at 0."""
        if errors > self._errors:
            POOL_ERRORS.add(role, by=errors - self._errors)
        if waited_ms > self._waited:
            POOL_WAITS.add(role, by=(waited_ms - self._waited) / 1000)
        self._errors, self._waited = errors, waited_ms


_sums = _PoolSums()
os.register_at_fork(after_in_child=_sums.reset)


def store(role: str, queues: Iterable[str] = ()) -> None:
    """Set the gauges of this process, and count what its pool has counted."""
    host = socket.gethostname()
    PROCESSES.set(1, role, host)
    MEMORY.set(_resident_bytes(), role, host)
    for queue in queues:
        QUEUE_WORKERS.set(1, queue)
    _store_pool(role, host)


def _store_pool(role: str, host: str) -> None:
    """Set the gauges of this process's connection pool."""
    pool = cast(DatabaseWrapper, connections[DEFAULT_DB_ALIAS]).pool
    stats = pool.get_stats() if pool else {}  # psycopg leaves out what is 0
    _sums.hand_on(role, stats.get("requests_errors", 0), stats.get("requests_wait_ms", 0))
    idle = stats.get("pool_available", 0)
    in_use = max(0, stats.get("pool_size", 0) - idle)
    CONNECTIONS.set(in_use, role, host, "in_use")
    CONNECTIONS.set(idle, role, host, "idle")
    WAITING.set(stats.get("requests_waiting", 0), role, host)
    if most := stats.get("pool_max", 0):
        FULLEST.set(in_use / most, role)


def start(role: str) -> None:
    """Start the thread that sets the gauges of this process every few seconds."""
    threads.start(_run, role, name="process gauges")


def _run(role: str) -> None:
    starts = threads.StartWatch()
    while True:
        store(role)
        starts.look()
        time.sleep(EVERY_SECONDS)


def _resident_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
    except OSError:  # there is none but on Linux
        return 0
