"""Threads that do the same at the same moment."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connections

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
