"""The processor time of each part of the service."""

from collections.abc import Callable, Sequence

import psutil

from bench.minutes import seconds_of

Parts = dict[str, Callable[[], float]]
"""For each part a function of its processor time until now, in seconds."""


def parts_of(web_server: psutil.Process, workers: Sequence[psutil.Process]) -> Parts:
    """Return the parts of a service with these programs, PostgreSQL and Valkey."""
    from django.db import connection

    from rme.core.redis.connection import redis_client

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        postgresql = psutil.Process(cursor.fetchone()[0]).parent()
    valkey = psutil.Process(redis_client().info("server")["process_id"])
    return {
        "web": lambda: seconds_of(web_server),
        "worker": lambda: sum(map(seconds_of, workers)),
        "PostgreSQL": lambda: seconds_of(postgresql),
        "Valkey": lambda: seconds_of(valkey),
    }
