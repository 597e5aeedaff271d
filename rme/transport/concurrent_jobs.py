"""Jobs that each wait for several answers in turn, run concurrently: one thread for each."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from rme.transport.client import Transport

T = TypeVar("T")
Job = Callable[[Transport], T]

THREADS = 4


def run_concurrently(jobs: Sequence[Job[T]], transport: Transport) -> list[T]:
    """Run jobs concurrently, the first in this thread; return their results in the same order.

    A job that waits for a slow host delays no other. Each has connections of its own, which are
    kept with the transport's. Raises what a job raises, once all have ended.
    """
    if not jobs:
        return []
    futures = [
        _threads().submit(job, transport.isolated(f"concurrent {number}"))
        for number, job in enumerate(jobs[1:])
    ]
    try:
        first = jobs[0](transport)
    finally:
        for future in futures:
            future.exception()
    return [first, *(future.result() for future in futures)]


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="concurrent")


os.register_at_fork(after_in_child=_threads.cache_clear)
