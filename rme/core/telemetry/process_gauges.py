"""What each process has now: memory, and its connections to PostgreSQL.

A scrape reaches one process of several, so each stores its gauges in Redis every few seconds, where
they expire with it. /metrics shows their sums by host and role, and the fullest pool of each role.
"""

import os
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, cast

import orjson
import structlog
from django.db import DEFAULT_DB_ALIAS, connections
from prometheus_client.core import GaugeMetricFamily, Metric
from redis import RedisError

from rme.core.db.postgresql.base import DatabaseWrapper
from rme.core.process import threads
from rme.core.redis import counters
from rme.core.redis.connection import redis_client

log = structlog.get_logger(__name__)

EVERY_SECONDS = 5.0
LIFE_SECONDS = 15
WEB, WORKER = "web", "worker"
POOL_ERRORS = "rme_database_pool_errors_total"
POOL_WAITS = "rme_database_pool_wait_seconds_total"
_PROCESSES = "rme:processes"
"""The set of processes that store gauges; those of each are a key of their own."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class PoolUse:
    """The connections of a process to PostgreSQL."""

    in_use: int = 0
    idle: int = 0
    waiting: int = 0
    """The threads that wait for one."""
    most: int = 0


@dataclass(frozen=True, slots=True)
class ProcessGauges:
    """The gauges of one process."""

    host: str
    role: str
    """WEB or WORKER."""
    queues: Sequence[str]
    """Those that a worker consumes."""
    memory: int
    """Resident bytes, the pages that it shares with others included."""
    in_use: int
    idle: int
    waiting: int
    most: int


_FIELDS = tuple(each.name for each in fields(ProcessGauges))


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
            counters.add(POOL_ERRORS, role, by=errors - self._errors)
        if waited_ms > self._waited:
            counters.add(POOL_WAITS, role, by=(waited_ms - self._waited) / 1000)
        self._errors, self._waited = errors, waited_ms


_sums = _PoolSums()
os.register_at_fork(after_in_child=_sums.reset)


def store(role: str, queues: Iterable[str] = ()) -> None:
    """Store the gauges of this process, and what it has counted. Never fails."""
    pool = _read_pool(role)
    gauges = ProcessGauges(
        socket.gethostname(), role, sorted(queues), _resident_bytes(), **asdict(pool)
    )
    process = f"{gauges.host}:{os.getpid()}"
    try:
        pipeline = redis_client().pipeline(transaction=True)
        pipeline.set(_key(process), orjson.dumps(gauges), ex=LIFE_SECONDS)
        pipeline.sadd(_PROCESSES, process)
        pipeline.expire(_PROCESSES, LIFE_SECONDS)
        pipeline.execute()
    except RedisError as error:
        log.warning("process_gauges.lost", process=process, error=type(error).__name__)
    counters.flush()  # a process that has nothing to do counts no more


def start(role: str) -> None:
    """Start the thread that stores the gauges of this process every few seconds."""
    threads.start(_run, role, name="process gauges")


def _run(role: str) -> None:
    starts = threads.StartWatch()
    while True:
        store(role)
        starts.look()
        time.sleep(EVERY_SECONDS)


def _read_pool(role: str) -> PoolUse:
    """Return the state of this process's connection pool, and hand on its sums."""
    pool = cast(DatabaseWrapper, connections[DEFAULT_DB_ALIAS]).pool
    if pool is None:
        return PoolUse()
    stats = pool.get_stats()  # psycopg leaves out what is 0
    _sums.hand_on(role, stats.get("requests_errors", 0), stats.get("requests_wait_ms", 0))
    idle = stats.get("pool_available", 0)
    return PoolUse(
        in_use=max(0, stats.get("pool_size", 0) - idle),
        idle=idle,
        waiting=stats.get("requests_waiting", 0),
        most=stats.get("pool_max", 0),
    )


def _resident_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
    except OSError:  # there is none but on Linux
        return 0


def read() -> list[ProcessGauges]:
    """Return the gauges of all processes that run. Raises RedisError."""
    members = redis_client().smembers(_PROCESSES)
    names = sorted(name.decode() for name in members if isinstance(name, bytes))
    if not names:
        return []
    texts = redis_client().mget([_key(name) for name in names])
    if gone := [name for name, text in zip(names, texts, strict=True) if text is None]:
        redis_client().srem(_PROCESSES, *gone)
    return [_of(orjson.loads(text)) for text in texts if text is not None]


def _of(values: dict[str, Any]) -> ProcessGauges:
    """Return the gauges that a process has stored; a later release may have stored more."""
    return ProcessGauges(**{name: values[name] for name in _FIELDS})


def families(processes: Sequence[ProcessGauges], queues: Iterable[str]) -> Iterator[Metric]:
    """Build the metrics; each of the queues has a count of its workers, also if it is 0."""
    groups: dict[tuple[str, str], list[ProcessGauges]] = {}
    for process in processes:
        groups.setdefault((process.role, process.host), []).append(process)
    running = _gauge("rme_processes", "Processes that run, by role and host.")
    memory = _gauge("rme_process_memory_bytes", "Resident memory of these processes together.")
    waiting_threads = _gauge("rme_database_pool_waiting", "Threads that wait for a connection.")
    connections = _gauge("rme_database_connections", "Connections to PostgreSQL.", "state")
    for names, group in sorted(groups.items()):
        running.add_metric(names, len(group))
        memory.add_metric(names, sum(process.memory for process in group))
        waiting_threads.add_metric(names, sum(process.waiting for process in group))
        connections.add_metric([*names, "in_use"], sum(process.in_use for process in group))
        connections.add_metric([*names, "idle"], sum(process.idle for process in group))
    yield from (running, memory, waiting_threads, connections, _fullest(processes))
    workers = GaugeMetricFamily(
        "rme_queue_workers", "Worker processes that consume a queue.", labels=["queue"]
    )
    for queue in queues:
        workers.add_metric([queue], sum(queue in process.queues for process in processes))
    yield workers


def _fullest(processes: Sequence[ProcessGauges]) -> Metric:
    family = GaugeMetricFamily(
        "rme_database_pool_used_ratio",
        "The share of its connections that the process with the fullest pool uses.",
        labels=["role"],
    )
    ratios: dict[str, float] = {}
    for process in processes:
        if process.most:
            ratios[process.role] = max(ratios.get(process.role, 0.0), process.in_use / process.most)
    for role, ratio in sorted(ratios.items()):
        family.add_metric([role], ratio)
    return family


def _gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=["role", "host", *labels])


def _key(process: str) -> str:
    return f"rme:process:{process}"
