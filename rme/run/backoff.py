"""How long to wait before a process that ended is started again."""

import random
import signal

FIRST_SECONDS = 0.5
LONGEST_SECONDS = 30.0
STEADY_SECONDS = 30.0
"""A process that ran for so long was well: its next end counts as the first."""


class RestartBackoff:
    """The waiting times of one process: they double up to a bound, and never end."""

    def __init__(self) -> None:
        self.failures = 0

    def failed(self, lived: float) -> float:
        """Count an end after so many seconds of life; return how many seconds to wait."""
        self.failures = 1 if lived >= STEADY_SECONDS else self.failures + 1
        longest = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(self.failures - 1, 10))
        return longest * random.uniform(0.5, 1.0)


def sentence(name: str, why: str, lived: float, failures: int, delay: float) -> str:
    """Return what the terminal is told about an end: what, why, how often, and when it is next."""
    times = "" if failures == 1 else f", {failures} times in a row"
    return f"{name} ended ({why}) after {lived:.1f} s{times}; it is started again in {delay:.1f} s."


def ending(code: int) -> str:
    """Return in words how a process ended; a negative code is a signal's number."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code}, {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal has no name
        return f"signal {-code}"
