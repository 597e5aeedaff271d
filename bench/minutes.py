"""The processor time of counting minutes, beside that of the messages of these minutes."""

import time
from collections.abc import Sequence
from datetime import datetime

import psutil


def service_seconds(programs: Sequence[psutil.Process]) -> float:
    """Return the processor time of programs, PostgreSQL and Valkey, since they were started."""
    from django.db import connection

    from rme.core.redis.connection import redis_client

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        postgresql = psutil.Process(cursor.fetchone()[0]).parent()
    valkey = psutil.Process(redis_client().info("server")["process_id"])
    tops = [*programs, postgresql, valkey]
    return sum(map(seconds_of, tops))


def seconds_of(top: psutil.Process) -> float:
    """Return the processor time of a program and its children."""
    return sum(map(_seconds, (top, *top.children(recursive=True))))


def _seconds(process: psutil.Process) -> float:
    spent = process.cpu_times()
    return float(spent.user + spent.system)


def count_twice(start: datetime) -> float:
    """Count each minute since `start` twice, as the job does; return its processor time.

    It is that of this process and of its connection's process in PostgreSQL.
    """
    from django.db import connection

    from messaging.models import CountedUntil
    from messaging.statistics import minutes
    from rme.core.db import clock

    minute, end = start.replace(second=0, microsecond=0), clock.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = psutil.Process(cursor.fetchone()[0])
    spent = 0.0
    while minute < end:
        following = minute + minutes.MINUTE
        for first, final, now in (
            (minute, following, following + minutes.GRACE),
            (following, minute, following + minutes.FINAL_AFTER),
        ):
            CountedUntil.objects.update_or_create(
                pk=1, defaults={"first_until": first, "final_until": final}
            )
            before = _seconds(backend) + time.process_time()
            assert minutes.count_slice(now)
            spent += _seconds(backend) + time.process_time() - before
        minute = following
    return spent
