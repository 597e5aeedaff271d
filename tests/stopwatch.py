"""The time that something takes, without the time in which a busy machine ran nothing of ours."""

import threading
import time
from types import TracebackType
from typing import Self

TICK = 0.01
LONGEST = 3 * TICK
"""A longer pause between two ticks was the machine's: a thread that waits is run that soon."""


class Stopwatch:
    """Measures the block by ticks of a thread of its own.

    On an idle machine `seconds` is the time by the clock. Where other processes take the
    processors away, the ticks come as late as what is measured, and count no more for that:
    so much of the time was `stalled`.
    """

    seconds = 0.0
    stalled = 0.0

    def __enter__(self) -> Self:
        self._done = threading.Event()
        self._ticking = threading.Thread(target=self._tick, args=(time.monotonic(),), daemon=True)
        self._ticking.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._ticking.join()

    def _tick(self, before: float) -> None:
        ended = False
        while not ended:
            ended = self._done.wait(TICK)
            now = time.monotonic()
            counted = min(now - before, LONGEST)
            self.seconds += counted
            self.stalled += now - before - counted
            before = now
