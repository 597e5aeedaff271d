"""The bell: whether a worker has been called to a channel and has not come yet (in Redis).

Thousands of accepts a second need one worker to look, not thousands of tasks: whoever sets the
key enqueues, and the worker takes the key away before it looks. A call that is lost with the
broker is out of the way after some seconds.
"""

from functools import cache
from urllib.parse import parse_qsl

from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

LOST_AFTER_MS = 3000


def broker_url(redis_url: str) -> str:
    """Write a Redis address as Celery does, which has a scheme of its own for sockets."""
    if not redis_url.startswith("unix://"):
        return redis_url
    path, _, query = redis_url.removeprefix("unix://").partition("?")
    database = dict(parse_qsl(query)).get("db", "0")
    return f"redis+socket://{path}?virtual_host={database}"


@cache
def client() -> Redis:
    """Give this process's connection pool to Redis. Time-outs are short: Redis is never needed."""
    return Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=settings.REDIS_TIMEOUT,
        socket_connect_timeout=settings.REDIS_TIMEOUT,
        retry=Retry(NoBackoff(), 1),
    )


def ring(name: str) -> bool:
    """Say whether a worker has to be called: nobody has called one lately. Raises RedisError."""
    return bool(client().set(f"rme:bell:{name}", 1, nx=True, px=LOST_AFTER_MS))


def answer(name: str) -> None:
    """Say that a worker has come, before it looks what there is. Raises RedisError."""
    client().delete(f"rme:bell:{name}")
