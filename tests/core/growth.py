"""How the work of a call grows with what it is given, in CPU time of this thread."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

TIMES = 8
LIMIT = 3.0
"""How much more a text of 8n may cost than eight of n: linear work is near 1, quadratic near 8."""
FLOOR_NS = 500_000
"""CPU time below which a text of 8n is no danger, and its ratio is noise."""
TRIES = 12
HANG_SECONDS = 4.0


class Hung(BaseException):
    """A call did not end; an exponential one never would."""


@contextmanager
def ended() -> Iterator[None]:
    """Raise Hung in what runs for longer (CPU time); patterns and Python look at signals."""

    def hang(*_: object) -> None:
        raise Hung

    before = signal.signal(signal.SIGPROF, hang)
    signal.setitimer(signal.ITIMER_PROF, HANG_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def ratio(call: Callable[[Any], object], small: Any, large: Any, times: int = TIMES) -> float:
    """Return the cost of a large input as a share of that of `times` small ones.

    Compares the least cost of each over several tries, since other processes only make a try
    dearer. Infinite for a call that doesn't end.
    """
    least_large = least_small = float("inf")
    try:
        with ended():
            for _ in range(TRIES):
                least_large = min(least_large, _cost(call, large))
                if least_large < FLOOR_NS:
                    return 0.0
                least_small = min(least_small, sum(_cost(call, small) for _ in range(times)))
                if least_large < LIMIT * least_small:
                    break
    except Hung:
        return float("inf")
    return least_large / max(least_small, 1)


def _cost(call: Callable[[Any], object], given: Any) -> int:
    started = time.thread_time_ns()
    call(given)
    return time.thread_time_ns() - started
