"""Hints: tasks that say only "look whether there is something to do".

After an outage thousands of them may wait. The first does the work, so the others need not look:
Redis knows when the last has begun, by its own clock, so that no two machines need agree on one.
"""

from redis import RedisError

from rme.core.redis import redis_client


def is_first(task: str, seconds: float) -> bool:
    """Return whether a task has not begun within the last seconds. Without Redis it has not."""
    try:
        return redis_client.ask("SET", _key(task), 1, "NX", "PX", int(seconds * 1000)) is not None
    except RedisError:
        return True


def forget(task: str) -> None:
    """Let the next hint be the first: what began has failed."""
    try:
        redis_client.ask("DEL", _key(task))
    except RedisError:
        return  # it fades


def _key(task: str) -> str:
    return f"rme:hint:{task}"
