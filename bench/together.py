"""Processes that begin their work at the same moment."""

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier


def seconds_together(count: int, work: Callable[[Barrier], None]) -> float:
    """Run work in so many processes; return the seconds from their common start to the last end.

    `work` prepares itself, waits at the barrier, then works.
    """
    spawning = multiprocessing.get_context("spawn")
    start = spawning.Barrier(count + 1)
    running = [spawning.Process(target=work, args=(start,)) for _ in range(count)]
    for process in running:
        process.start()
    start.wait(60)
    started = time.perf_counter()
    for process in running:
        process.join()
    return time.perf_counter() - started
