"""Hints: periodic tasks that carry no data, only the request to look for work.

After an outage thousands of the same task may wait in a queue. The first does the work, so the rest
may return at once: a key in Redis records that the task was started, and expires by Redis's clock,
so that the clocks of machines may differ.
"""

from redis import RedisError

from rme.core.redis.connection import command


def is_first(task: str, seconds: float) -> bool:
    """Return whether the task was not started within the last `seconds`; True without Redis."""
    try:
        return command("SET", _key(task), 1, "NX", "PX", int(seconds * 1000)) is not None
    except RedisError:
        return True


def forget(task: str) -> None:
    """Let the next hint be the first again, because the task that was started has failed."""
    try:
        command("DEL", _key(task))
    except RedisError:
        return  # the key expires


def _key(task: str) -> str:
    return f"rme:hint:{task}"
