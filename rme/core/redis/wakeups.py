"""Wakeups: whether a worker was called to a channel and has not started yet (a key in Redis).

Thousands of accepts a second need one worker to look for work, not thousands of tasks. Only the
caller that sets the key enqueues a task, and the worker deletes the key before it looks for work.
The key expires, so that a task that the broker lost blocks its channel for some seconds only.
"""

import structlog
from redis import RedisError

from rme.core.redis.connection import command

log = structlog.get_logger(__name__)

LOST_AFTER_MS = 3000


def request_wakeup(name: str) -> bool:
    """Return whether the caller has to enqueue a task: no wakeup is pending. Raises RedisError."""
    return command("SET", _key(name), 1, "NX", "PX", LOST_AFTER_MS) is not None


def clear_wakeup(name: str) -> None:
    """Delete the wakeup that brought this worker, before it looks for work.

    Never fails: where Redis is away, the key expires by itself.
    """
    try:
        command("DEL", _key(name))
    except RedisError as error:
        log.warning("wakeup.not_cleared", channel=name, error=type(error).__name__)


def _key(name: str) -> str:
    return f"rme:bell:{name}"
