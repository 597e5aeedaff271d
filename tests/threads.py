"""Threads that do the same at the same moment, or that wait for a transaction."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connection, connections, transaction

T = TypeVar("T")


def at_once(job: Callable[[], T], count: int) -> list[T]:
    """Do a job in so many threads that start together.

    Gives what each returned, or raises what one of them raised.
    """
    start = threading.Barrier(count)

    def run(_: int) -> T:
        try:
            start.wait(20)
            return job()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def waiting() -> int:
    """Return how many connections wait for a lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # else a transaction sees the first one
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        (count,) = cursor.fetchone()
    return int(count)


def during(change: Callable[[], object], *calls: Callable[[], T]) -> list[T]:
    """Make calls in threads while a transaction makes a change first; return the answers."""
    answers: list[T] = []

    def call(job: Callable[[], T]) -> None:
        try:
            answers.append(job())
        finally:
            connections.close_all()

    threads = [threading.Thread(target=call, args=(job,)) for job in calls]
    with transaction.atomic():
        change()
        for thread in threads:
            thread.start()
        until = time.monotonic() + 20
        while waiting() < len(calls) and any(thread.is_alive() for thread in threads):
            assert time.monotonic() < until, "the calls don't wait"
            time.sleep(0.01)
    for thread in threads:
        thread.join()
    assert len(answers) == len(calls), "a call raised an exception"
    return answers
