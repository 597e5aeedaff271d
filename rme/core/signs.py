"""Signs of life, in Redis: whoever lives leaves one every few seconds, and it fades by itself."""

from collections.abc import Sequence

import structlog
from redis import RedisError

from rme.core import bell

log = structlog.get_logger(__name__)

EVERY_SECONDS = 5.0
LIFE_SECONDS = 15


def leave(who: str) -> None:
    """Leave a sign of life. Never fails: that is what its absence is for."""
    try:
        bell.client().set(f"rme:alive:{who}", 1, ex=LIFE_SECONDS)
    except RedisError as error:
        log.warning("signs.lost", who=who, error=type(error).__name__)


def seen(who: Sequence[str]) -> list[bool]:
    """Say of each whether it lived within the last `LIFE_SECONDS`. Raises RedisError."""
    return [bool(sign) for sign in bell.client().mget([f"rme:alive:{name}" for name in who])]
