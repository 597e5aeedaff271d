"""Slowing down: credentials and hosts that asked to be left alone for a while (in Redis).

Each refusal doubles the time, up to 15 minutes; the first success forgets them. While Redis is
away nothing is held: then each message waits by itself. A process that found a name without a
refusal asks again after a second; what was refused to itself it knows at once.
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
"""Names that were neither held nor refused: as nearly all are, and each window would ask."""


def _is_free(name: str) -> bool:
    return bool(_free.get(name, lambda: None))


def _keys(name: str) -> tuple[str, str]:
    return f"rme:push:hold:{name}", f"rme:push:strikes:{name}"


def held(names: Collection[str]) -> dict[str, float]:
    """Give the seconds for which each of the names that are held still is."""
    asked = [name for name in names if not _is_free(name)]
    if not asked:
        return {}
    try:
        with redis_client().pipeline(transaction=False) as pipeline:
            for name in asked:
                hold, strikes = _keys(name)
                pipeline.pttl(hold)
                pipeline.exists(strikes)
            told = pipeline.execute()
    except RedisError as error:
        log.warning("push.holds_unread", error=type(error).__name__)
        return {}
    found = {}
    for name, ms, refused in zip(asked, told[::2], told[1::2], strict=True):
        if ms > 0:
            found[name] = ms / 1000
        elif not refused:
            _free.put(name, True)
    return found


def hold(name: str, first: float, wish: float | None = None) -> float:
    """Hold a name as long as the service wishes, else `first` seconds, doubling; give how long."""
    key, strikes = _keys(name)
    _free.forget(name)
    seconds = first if wish is None else wish
    try:
        with redis_client().pipeline() as pipeline:
            pipeline.incr(strikes)
            pipeline.expire(strikes, _FORGET_SECONDS)
            count = pipeline.execute()[0]
        if wish is None:
            seconds = min(first * 2 ** min(count - 1, 20), LONGEST)
        seconds = max(seconds, 0.001)
        redis_client().set(key, 1, px=int(min(seconds, _FORGET_SECONDS) * 1000) or 1)
    except RedisError as error:
        log.warning("push.hold_lost", error=type(error).__name__)
    return seconds


def release(names: Collection[str]) -> None:
    """Forget the refusals of names that took something again."""
    refused = [name for name in names if not _is_free(name)]
    if not refused:
        return
    try:
        redis_client().delete(*(_keys(name)[1] for name in refused))
    except RedisError as error:
        log.warning("push.hold_lost", error=type(error).__name__)
