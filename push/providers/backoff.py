"""Backoff: credentials and hosts that asked us to slow down, shared by all processes in Redis.

A throttle key names such a credential or host. Each refusal doubles its time, up to 15 minutes; the
first success resets it. While Redis is away nothing is throttled, and each message waits by itself.
A process that found a key without a refusal looks again after a second; it knows at once what was
refused to itself.
"""

from collections.abc import Collection

import structlog
from redis import RedisError

from rme.core.cache import TtlCache
from rme.core.redis.connection import redis_client

log = structlog.get_logger(__name__)

LONGEST = 15 * 60.0
_FORGET_SECONDS = 3600

_free: TtlCache[str, bool] = TtlCache(seconds=1.0)
"""Keys that were neither throttled nor refused. Most are, and every window would look them up."""


def _is_free(key: str) -> bool:
    return bool(_free.get(key, lambda: None))


def _redis_keys(key: str) -> tuple[str, str]:
    return f"rme:push:hold:{key}", f"rme:push:strikes:{key}"


def remaining(keys: Collection[str]) -> dict[str, float]:
    """Return the seconds for which each of the keys that are throttled still is."""
    unsure = [key for key in keys if not _is_free(key)]
    if not unsure:
        return {}
    try:
        with redis_client().pipeline(transaction=False) as pipeline:
            for key in unsure:
                throttled, refusals = _redis_keys(key)
                pipeline.pttl(throttled)
                pipeline.exists(refusals)
            values = pipeline.execute()
    except RedisError as error:
        log.warning("push.backoff_unread", error=type(error).__name__)
        return {}
    seconds = {}
    for key, ms, refused in zip(unsure, values[::2], values[1::2], strict=True):
        if ms > 0:
            seconds[key] = ms / 1000
        elif not refused:
            _free.put(key, True)
    return seconds


def start(key: str, first: float, retry_after: float | None = None) -> float:
    """Throttle a key; return the seconds.

    They are `retry_after` if the service named it, else `first`, doubled for each refusal.
    """
    throttled, refusals = _redis_keys(key)
    _free.forget(key)
    seconds = first if retry_after is None else retry_after
    try:
        with redis_client().pipeline() as pipeline:
            pipeline.incr(refusals)
            pipeline.expire(refusals, _FORGET_SECONDS)
            count = pipeline.execute()[0]
        if retry_after is None:
            seconds = min(first * 2 ** min(count - 1, 20), LONGEST)
        seconds = max(seconds, 0.001)
        redis_client().set(throttled, 1, px=int(min(seconds, _FORGET_SECONDS) * 1000) or 1)
    except RedisError as error:
        log.warning("push.backoff_lost", error=type(error).__name__)
    return seconds


def reset(keys: Collection[str]) -> None:
    """Forget the refusals of keys after a success."""
    refused = [key for key in keys if not _is_free(key)]
    if not refused:
        return
    try:
        redis_client().delete(*(_redis_keys(key)[1] for key in refused))
    except RedisError as error:
        log.warning("push.backoff_lost", error=type(error).__name__)
