"""Checks of hosts that people typed, in Redis: which of them run, and what the last ones found.

So a page of any web process shows the progress and the result of a check. An organization runs one
check at a time, and all organizations together `LIMIT`, in all processes.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import orjson
import structlog
from django.utils.translation import gettext, gettext_noop
from redis import RedisError

from rme.core.redis.connection import redis_client

log = structlog.get_logger(__name__)

LIMIT = 8
LIFE_SECONDS = 90
"""A check that has no result by then was lost with its process."""
KEPT_SECONDS = 600
"""How long a page shows a result."""
LOST = gettext_noop(
    "The check ended without a result, because its process was stopped. Start it again."
)
_RUNNING = "rme:host_checks"
"""The organizations whose check runs, by the time at which it counts as lost."""

# KEYS: the running checks, the record. ARGV: the organization, the limit, its life, how long the
# record is kept.
_BEGIN = """
local time = redis.call('TIME')
local now = tonumber(time[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 'own' end
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 'all' end
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), ARGV[1])
redis.call('SET', KEYS[2], cjson.encode({started = now}), 'EX', ARGV[4])
return 'begun'
"""


class Start(Enum):
    """Whether a check may start."""

    BEGUN = "begun"
    OWN = "own"
    """Another check of the organization runs."""
    ALL = "all"
    """`LIMIT` other organizations have a check that runs."""


class HostCheck(NamedTuple):
    """A check of the last minutes."""

    is_running: bool
    is_lost: bool
    """Whether its process ended before it had a result."""
    result: Mapping[str, Any]

    @property
    def problem(self) -> str:
        """Return why it has no result, as a sentence in the language of the page; empty while it
        runs or if it has one.
        """
        problem = LOST if self.is_lost else str(self.result.get("problem", ""))
        return problem and gettext(problem)


def begin(organization_id: str, name: str) -> Start:
    """Record that a check starts, if it may. While Redis is away each may, and has no record."""
    keys = [_RUNNING, _key(organization_id, name)]
    arguments: list[str | int] = [organization_id, LIMIT, LIFE_SECONDS, KEPT_SECONDS]
    try:
        answer: Any = redis_client().eval(_BEGIN, len(keys), *keys, *arguments)
    except RedisError as error:
        log.warning("host_check.not_recorded", error=type(error).__name__)
        return Start.BEGUN
    return Start(answer.decode())


def end(organization_id: str, name: str, result: Mapping[str, object] | None) -> None:
    """Record the end of a check, with its result, or with none if no page shows it. Never fails."""
    key = _key(organization_id, name)
    try:
        pipeline = redis_client().pipeline(transaction=True)
        pipeline.zrem(_RUNNING, organization_id)
        if result is None:
            pipeline.delete(key)
        else:
            pipeline.set(key, orjson.dumps({"result": result}), ex=KEPT_SECONDS)
        pipeline.execute()
    except RedisError as error:
        log.warning("host_check.not_recorded", error=type(error).__name__)


def read(organization_id: str, names: Sequence[str]) -> dict[str, HostCheck]:
    """Return those checks of an organization that are known, by name; none without Redis."""
    try:
        pipeline = redis_client().pipeline(transaction=False)
        pipeline.time()
        pipeline.mget([_key(organization_id, name) for name in names])
        (now, _), texts = pipeline.execute()
    except RedisError:
        return {}
    records = {
        name: orjson.loads(text)
        for name, text in zip(names, texts, strict=True)
        if text is not None
    }
    return {name: _check(record, now) for name, record in records.items()}


def _check(record: Mapping[str, Any], now: int) -> HostCheck:
    if "result" in record:
        return HostCheck(is_running=False, is_lost=False, result=record["result"])
    is_lost = now >= record["started"] + LIFE_SECONDS
    return HostCheck(not is_lost, is_lost, {})


def _key(organization_id: str, name: str) -> str:
    return f"rme:host_check:{organization_id}:{name}"
