"""The bell: whether a worker has been called to a channel and has not come yet (in Redis).

Thousands of accepts a second need one worker to look, not thousands of tasks: whoever sets the
key enqueues, and the worker takes the key away before it looks. A call that is lost with the
broker is out of the way after some seconds.
"""

import os
import threading
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

import structlog
from django.conf import settings
from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as ConnectionLost
from redis.retry import Retry

log = structlog.get_logger(__name__)

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


class _Own(threading.local):
    """A thread's own connection: whose pool and which process made it, and itself."""

    client: Redis | None = None
    process = 0
    connection: Any = None


_own = _Own()


def ask(*command: str | float) -> Any:
    """Ask Redis by this thread's own connection, once more where that was lost. Raises RedisError.

    For what every call asks: to go by the pool costs as much again.
    """
    connection = _connection()
    try:
        return _exchange(connection, command)
    except ConnectionLost:
        return _exchange(connection, command)


def _connection() -> Any:
    shared = client()
    if _own.client is not shared or _own.process != os.getpid():
        # Beside the pool, which counts what it makes, and would run out as threads come and go.
        pool = shared.connection_pool
        _own.connection = pool.connection_class(**pool.connection_kwargs)
        _own.client, _own.process = shared, os.getpid()
    return _own.connection


def _exchange(connection: Any, command: tuple[str | float, ...]) -> Any:
    connection.send_command(*command)
    return connection.read_response()


def ring(name: str) -> bool:
    """Say whether a worker has to be called: nobody has called one lately. Raises RedisError."""
    return ask("SET", f"rme:bell:{name}", 1, "NX", "PX", LOST_AFTER_MS) is not None


def answer(name: str) -> None:
    """Say that a worker has come, before it looks what there is. Never fails: without Redis the key
    is gone too, or will be soon.
    """
    try:
        ask("DEL", f"rme:bell:{name}")
    except RedisError as error:
        log.warning("bell.not_answered", channel=name, error=type(error).__name__)
