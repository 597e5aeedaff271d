"""Steps that may take only so much CPU time, and which step a process was ended in.

A step that works on what strangers wrote is meant to be short. Should it not be:

1. After its time `Overrun` is raised in it. Python and its regular expressions look for signals.
2. Native code does not. After twice the time the kernel ends the process (SIGPROF), wherever it is.
   The step was written down before, and the process that takes the place reads it (`begin`).

CPU time of the process, not time on the wall: a busy or frozen machine must not end anything.

To set and stop timers for each step costs more than many steps do. So the timers run for many steps
(`timers`), and tick: a step that is found at several ticks in a row has had its time, and the time
until the kernel ends the process begins anew at each tick that finds another step.
"""

import faulthandler
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from mmap import mmap
from types import TracebackType
from typing import IO

import structlog

log = structlog.get_logger(__name__)

_STEP_BYTES = 1024
"""What is written down of a step."""
_TRACE_BYTES = 20_000

_TICKS = 8
"""So often a step is found again before its time is over."""

_files: list[IO[bytes]] = []
"""One for each process of the pool, made before they are, so that the next one has it too."""
_steps: list[mmap] = []
"""Likewise: memory that the processes share, where each writes the step that it is in."""


class Overrun(BaseException):
    """A step took too much CPU time. No `except Exception` on the way takes it for its own."""


class _Watch:
    """The step that this process is in, and how often a tick has found it."""

    def __init__(self) -> None:
        self.place: mmap | None = None
        """Where the steps are written; None: the process has no place in a pool."""
        self.seconds = 0.0
        """What a step may take; 0: the timers are off."""
        self.count = 0
        self.step = 0
        """The step's number; 0 between steps."""
        self.found = 0
        """The step that the last tick found."""
        self.again = 0
        """How many ticks in a row found that step again."""

    def arm(self, seconds: float) -> None:
        """Start the timers."""
        self.seconds, self.found = seconds, 0
        signal.signal(signal.SIGVTALRM, self._tick)
        self._put_off_the_end()
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds / _TICKS, seconds / _TICKS)

    def disarm(self) -> None:
        """Stop the timers."""
        self.seconds = 0.0
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)

    def enter(self, step: bytes) -> None:
        """Write down the step that begins."""
        if self.place is not None:
            self.place[:] = step[:_STEP_BYTES].ljust(_STEP_BYTES, b"\0")
        self.count += 1
        self.step = self.count

    def leave(self) -> None:
        """Note that the step has ended."""
        self.step = 0
        if self.place is not None:
            self.place[0] = 0

    def _tick(self, *_: object) -> None:
        """Raise Overrun if the step has had its time, and at each tick from then on, should
        something on the way pass over it.
        """
        if not self.step or self.step != self.found:
            self.found, self.again = self.step, 0
            self._put_off_the_end()
            return
        self.again += 1
        if self.again >= _TICKS:
            raise Overrun

    def _put_off_the_end(self) -> None:
        if self.place is not None:
            signal.setitimer(signal.ITIMER_PROF, 2 * self.seconds)


_watch = _Watch()


def prepare(count: int) -> None:
    """Make room for the steps of so many processes; for the process that starts them."""
    _files[:] = [tempfile.TemporaryFile() for _ in range(count)]  # noqa: SIM115 - kept open
    _steps[:] = [mmap(-1, _STEP_BYTES) for _ in range(count)]


def begin(index: int) -> bytes:
    """Take the place of a pool's process; return the step that ended the one before, if one did."""
    if index >= len(_files):
        return b""
    place = _watch.place = _steps[index]
    step = b"" if place[0] == 0 else place[:].rstrip(b"\0")
    place[0] = 0
    file = _files[index].fileno()
    trace = os.pread(file, _TRACE_BYTES, 0).decode(errors="replace")
    os.ftruncate(file, 0)
    os.lseek(file, 0, os.SEEK_SET)
    # It writes without waiting for native code, and then lets the signal end the process.
    faulthandler.register(signal.SIGPROF, file=file, chain=True)
    if not trace:
        return b""  # it ended by something else
    log.error("process.overrun", trace=trace)
    return step


@contextmanager
def timers(seconds: float) -> Iterator[None]:
    """Run the timers for all steps inside, each of which may take so long."""
    if _watch.seconds or not _is_main_thread():
        yield
        return
    _watch.arm(seconds)
    try:
        yield
    finally:
        _watch.disarm()


class Step(AbstractContextManager[None]):
    """Raise Overrun in what takes longer, by an eighth at most; end the process where that cannot
    be raised. Inside of `timers` their time counts.

    Only where signals arrive: in the main thread, and the second in a process of a pool.
    """

    __slots__ = ("own", "seconds", "step")

    def __init__(self, seconds: float, step: bytes) -> None:
        """Take the seconds, and what `begin` returns where the process ends."""
        self.seconds, self.step = seconds, step
        self.own: ExitStack | None = None

    def __enter__(self) -> None:
        if not _is_main_thread():
            return
        if not _watch.seconds:
            self.own = ExitStack()
            self.own.enter_context(timers(self.seconds))
        _watch.enter(self.step)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not _is_main_thread():
            return
        _watch.leave()
        if self.own:
            self.own.close()


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
