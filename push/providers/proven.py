"""Which credentials and topics a service has accepted at least once, in Redis.

A service answers a dead token and the wrong credential alike. Only what was accepted before can
prove that the token is dead.
"""

import structlog
from redis import RedisError

from rme.core.cache import TtlCache
from rme.core.redis.connection import redis_client

log = structlog.get_logger(__name__)

PROVEN_SECONDS = 400 * 86_400

_proven: TtlCache[str, bool] = TtlCache(seconds=3600)


def prove(names: set[str]) -> None:
    """Store that a credential, or a credential with a topic, was accepted."""
    new_names = [name for name in names if not _proven.get(name, lambda: None)]
    if not new_names:
        return
    try:
        with redis_client().pipeline(transaction=False) as pipeline:
            for name in new_names:
                pipeline.set(f"rme:push:proven:{name}", 1, ex=PROVEN_SECONDS)
            pipeline.execute()
    except RedisError as error:
        log.warning("push.proof_unkept", error=type(error).__name__)
    for name in new_names:
        _proven.put(name, True)


def is_proven(name: str) -> bool:
    """Return whether it was ever accepted; False while Redis is away, which spares the device."""

    def look_up() -> bool | None:
        try:
            return bool(redis_client().exists(f"rme:push:proven:{name}")) or None
        except RedisError:
            return None

    return bool(_proven.get(name, look_up))
