"""Heartbeats in Redis: each process of a worker stores one every few seconds, and it expires.

A process that runs may still fail at every task, so its heartbeat names the tasks that failed when
last run, and whether tasks arrive from the broker. The scheduler's heartbeat is stored by each
sweep that beat ordered.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson
import structlog
from redis import RedisError

from rme.core.redis.connection import redis_client

log = structlog.get_logger(__name__)

EVERY_SECONDS = 5.0
LIFE_SECONDS = 15
WORKERS = "rme:workers"
"""The set of processes with a heartbeat; the heartbeat itself is a key of its own."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The state of one process of a worker."""

    process: str
    failing: dict[str, str] = field(default_factory=dict)
    """The tasks whose last run in this process failed: name → class of the error."""
    works: bool = True
    """No task has failed, or one has succeeded since."""
    unprompted: bool = False
    """No task arrives from the broker: the process polls PostgreSQL for work."""


def mark_alive(name: str) -> None:
    """Store that `name` is alive now. Never fails: without it `name` counts as gone."""
    try:
        redis_client().set(_key(name), 1, ex=LIFE_SECONDS)
    except RedisError as error:
        log.warning("heartbeat.lost", process=name, error=type(error).__name__)


def are_alive(names: Sequence[str]) -> list[bool]:
    """Return for each name whether it was alive in the last `LIFE_SECONDS`. Raises RedisError."""
    return [value is not None for value in redis_client().mget([_key(name) for name in names])]


def store(heartbeat: Heartbeat) -> None:
    """Store the heartbeat of a process. Never fails."""
    try:
        pipeline = redis_client().pipeline(transaction=True)
        pipeline.set(_key(heartbeat.process), orjson.dumps(heartbeat), ex=LIFE_SECONDS)
        pipeline.sadd(WORKERS, heartbeat.process)
        pipeline.expire(WORKERS, LIFE_SECONDS)
        pipeline.execute()
    except RedisError as error:
        log.warning("heartbeat.lost", process=heartbeat.process, error=type(error).__name__)


def read() -> list[Heartbeat]:
    """Return the heartbeats of all processes of workers that run. Raises RedisError."""
    members = redis_client().smembers(WORKERS)
    names = sorted(name.decode() for name in members if isinstance(name, bytes))
    if not names:
        return []
    texts = redis_client().mget([_key(name) for name in names])
    if gone := [name for name, text in zip(names, texts, strict=True) if text is None]:
        redis_client().srem(WORKERS, *gone)
    return [Heartbeat(**orjson.loads(text)) for text in texts if text is not None]


def _key(name: str) -> str:
    return f"rme:alive:{name}"
