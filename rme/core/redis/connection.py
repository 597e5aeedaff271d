"""The connection pool to Redis, and a connection of each thread for frequent commands."""

import os
import threading
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as ConnectionLost
from redis.retry import Retry


def broker_url(redis_url: str) -> str:
    """Return a Redis URL as Celery writes it: it has a scheme of its own for sockets."""
    if not redis_url.startswith("unix://"):
        return redis_url
    path, _, query = redis_url.removeprefix("unix://").partition("?")
    database = dict(parse_qsl(query)).get("db", "0")
    return f"redis+socket://{path}?virtual_host={database}"


@cache
def redis_client() -> Redis:
    """Return the client with this process's connection pool.

    Its timeouts are short (`REDIS_TIMEOUT`, in seconds), because nothing depends on Redis.
    """
    return Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=settings.REDIS_TIMEOUT,
        socket_connect_timeout=settings.REDIS_TIMEOUT,
        retry=Retry(NoBackoff(), 1),
    )


class _ThreadConnection(threading.local):
    """This thread's connection, with the client and the process that it was made for."""

    client: Redis | None = None
    process = 0
    connection: Any = None  # redis-py's connection classes share no typed interface


_thread = _ThreadConnection()


def command(*arguments: str | float) -> Any:
    """Send a command by this thread's connection and return the reply. Raises RedisError.

    Faster than the pool, which costs as much again as the command. A connection that was lost is
    opened again, once.
    """
    connection = _connection()
    try:
        return _exchange(connection, arguments)
    except ConnectionLost:
        return _exchange(connection, arguments)


def _connection() -> object:
    client = redis_client()
    if _thread.client is not client or _thread.process != os.getpid():
        # Not taken from the pool: it counts its connections, and would run out of them as threads
        # start and end.
        pool = client.connection_pool
        _thread.connection = pool.connection_class(**pool.connection_kwargs)
        _thread.client, _thread.process = client, os.getpid()
    return _thread.connection


def _exchange(connection: Any, arguments: tuple[str | float, ...]) -> Any:
    connection.send_command(*arguments)
    return connection.read_response()
