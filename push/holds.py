"""Slowing down: credentials and hosts that asked to be left alone for a while (in Redis).

Each refusal doubles the time, up to 15 minutes; the first success forgets them. While Redis is
away nothing is held: then each message waits by itself.
"""

from collections.abc import Collection

import structlog
from redis import RedisError

from rme.core import bell

log = structlog.get_logger(__name__)

LONGEST = 15 * 60.0
_FORGET_SECONDS = 3600


def _keys(name: str) -> tuple[str, str]:
    return f"rme:push:hold:{name}", f"rme:push:strikes:{name}"


def held(names: Collection[str]) -> dict[str, float]:
    """Give the seconds for which each of the names that are held still is."""
    try:
        with bell.client().pipeline(transaction=False) as pipeline:
            for name in names:
                pipeline.pttl(_keys(name)[0])
            left = pipeline.execute() if names else []
    except RedisError as error:
        log.warning("push.holds_unread", error=type(error).__name__)
        return {}
    return {name: ms / 1000 for name, ms in zip(names, left, strict=True) if ms > 0}


def hold(name: str, first: float, wish: float | None = None) -> float:
    """Hold a name as long as the service wishes, else `first` seconds, doubling; give how long."""
    key, strikes = _keys(name)
    seconds = first if wish is None else wish
    try:
        with bell.client().pipeline() as pipeline:
            pipeline.incr(strikes)
            pipeline.expire(strikes, _FORGET_SECONDS)
            count = pipeline.execute()[0]
        if wish is None:
            seconds = min(first * 2 ** min(count - 1, 20), LONGEST)
        seconds = max(seconds, 0.001)
        bell.client().set(key, 1, px=int(min(seconds, _FORGET_SECONDS) * 1000) or 1)
    except RedisError as error:
        log.warning("push.hold_lost", error=type(error).__name__)
    return seconds


def release(names: Collection[str]) -> None:
    """Forget the refusals of names that took something again."""
    if not names:
        return
    try:
        bell.client().delete(*(_keys(name)[1] for name in names))
    except RedisError as error:
        log.warning("push.hold_lost", error=type(error).__name__)
