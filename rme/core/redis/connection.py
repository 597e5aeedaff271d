"""The connection pool to Redis, and a connection of each thread for frequent commands."""

import os
import threading
from functools import cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as ConnectionLost
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelManagedConnection

from rme.core.environment import redis_url


@cache
def redis_client() -> Redis:
    """Return the client with this process's connection pool.

    Its timeouts are short (`REDIS_TIMEOUT`, in seconds), because nothing depends on Redis. With
    Sentinel each new connection asks for the primary; one to a server that is no primary any more
    ends at its first write.
    """
    return _client(settings.REDIS_URL)


def _client(url: str) -> Redis:
    options: dict[str, Any] = {
        "socket_timeout": settings.REDIS_TIMEOUT,
        "socket_connect_timeout": settings.REDIS_TIMEOUT,
        "retry": Retry(NoBackoff(), 1),
    }
    sentinels = redis_url.sentinels(url)
    if sentinels is None:
        return Redis.from_url(url, **options)
    own_options = {**options, **sentinels.sentinel_options()}
    sentinel: Any = Sentinel(sentinels.hosts, sentinel_kwargs=own_options)
    client: Redis = sentinel.master_for(sentinels.service, **options, **sentinels.server_options())
    return client


def is_cluster() -> bool:
    """Return whether Redis is a cluster, which cannot be used. Raises RedisError."""
    return _is_cluster(redis_client())


def _is_cluster(client: Redis) -> bool:
    return client.info("cluster").get("cluster_enabled") == 1


def refuse_cluster() -> None:
    """Raise ImproperlyConfigured if Redis is a cluster, or a broker that is Redis.

    One that does not answer is not refused.
    """
    names = {settings.BROKER_ADDRESS: "CELERY_BROKER_URL", settings.REDIS_URL: "REDIS_URL"}
    for url, name in names.items():
        if not redis_url.is_redis(url):
            continue
        client = _client(url)
        try:
            if _is_cluster(client):
                raise ImproperlyConfigured(f"{name} {redis_url.CLUSTER}.")
        except RedisError:
            continue
        finally:
            client.close()  # before any fork


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


def _exchange(connection: Any, arguments: tuple[str | float, ...]) -> object:
    if isinstance(connection, SentinelManagedConnection) and not connection.is_connected:
        # Asks for the primary; sending would connect to the last address.
        connection.connect()
    connection.send_command(*arguments)
    # With Sentinel redis-py would keep a connection that a late reply may arrive on.
    return connection.read_response(disconnect_on_error=True)
