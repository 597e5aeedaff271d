"""The pause before a process that ended is started again."""

import random
import signal
import time

from rme.run.process import say

FIRST_SECONDS = 0.5
LONGEST_SECONDS = 30.0
STEADY_SECONDS = 30.0
"""After a process has run for this time, its next end counts as the first."""


class RestartBackoff:
    """When a process may be started again: the pauses double up to a bound."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.failures = 0
        self._started = 0.0
        self._next_start = 0.0

    def begin(self) -> bool:
        """Return whether the process is due; if so, its uptime counts from now."""
        now = time.monotonic()
        if now < self._next_start:
            return False
        self._started = now
        return True

    def ended(self, cause: str) -> None:
        """Schedule the next start, and say so on the terminal."""
        now = time.monotonic()
        uptime = now - self._started
        delay = self.failed(uptime)
        self._next_start = now + delay
        say(f"rme: {sentence(self.name, cause, uptime, self.failures, delay)}")

    def failed(self, uptime: float) -> float:
        """Count an end after `uptime` seconds; return the seconds to wait."""
        self.failures = 1 if uptime >= STEADY_SECONDS else self.failures + 1
        longest = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(self.failures - 1, 10))
        return longest * random.uniform(0.5, 1.0)


def sentence(name: str, cause: str, uptime: float, failures: int, delay: float) -> str:
    """Return the line for the terminal: what ended, why, how often, and when it starts again."""
    times = "" if failures == 1 else f", {failures} times in a row"
    return (
        f"{name} ended ({cause}) after {uptime:.1f} s{times}; it is started again in {delay:.1f} s."
    )


def ending(code: int) -> str:
    """Return how a process ended as text; a negative code is a signal's number."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code}, {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal has no name
        return f"signal {-code}"
