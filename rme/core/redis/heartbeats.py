"""Heartbeats, in Redis: each process of a worker leaves one every few seconds, and it fades.

A process that lives may still fail at all it does, so its heartbeat carries which of its tasks
failed last, and whether tasks come at all. The scheduler's is left by each sweep that beat ordered.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import structlog
from redis import RedisError

from rme.core.redis import redis_client

log = structlog.get_logger(__name__)

EVERY_SECONDS = 5.0
LIFE_SECONDS = 15
WORKERS = "rme:workers"
"""The set of processes that lived lately; each has a key of its own."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a process of a worker tells of itself."""

    process: str
    failing: dict[str, str] = field(default_factory=dict)
    """The tasks that failed when this process did them last, and by which kind of error."""
    works: bool = True
    """A task has succeeded since one failed, or none has failed."""
    unprompted: bool = False
    """No task comes from the broker: it asks PostgreSQL what there is to do."""


def leave(who: str) -> None:
    """Leave a sign of life. Never fails: that is what its absence is for."""
    try:
        redis_client.client().set(_key(who), 1, ex=LIFE_SECONDS)
    except RedisError as error:
        log.warning("signs.lost", who=who, error=type(error).__name__)


def seen(who: Sequence[str]) -> list[bool]:
    """Return of each whether it lived within the last `LIFE_SECONDS`. Raises RedisError."""
    return [bool(sign) for sign in redis_client.client().mget([_key(name) for name in who])]


def beat(heartbeat: Heartbeat) -> None:
    """Leave the heartbeat of a process. Never fails."""
    try:
        pipeline = redis_client.client().pipeline(transaction=True)
        pipeline.set(_key(heartbeat.process), orjson.dumps(heartbeat), ex=LIFE_SECONDS)
        pipeline.sadd(WORKERS, heartbeat.process)
        pipeline.expire(WORKERS, LIFE_SECONDS)
        pipeline.execute()
    except RedisError as error:
        log.warning("signs.lost", who=heartbeat.process, error=type(error).__name__)


def heartbeats() -> list[Heartbeat]:
    """Return the heartbeats of all processes of workers that live. Raises RedisError."""
    members: set[Any] = redis_client.client().smembers(WORKERS)
    names = sorted(name.decode() for name in members)
    if not names:
        return []
    found = redis_client.client().mget([_key(name) for name in names])
    if gone := [name for name, left in zip(names, found, strict=True) if left is None]:
        redis_client.client().srem(WORKERS, *gone)
    return [Heartbeat(**orjson.loads(left)) for left in found if left is not None]


def _key(name: str) -> str:
    return f"rme:alive:{name}"
