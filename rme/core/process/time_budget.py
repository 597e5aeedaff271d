"""Limits on the CPU time of steps, and the record of the step in which a process was ended.

A step that processes untrusted input has to be short. If it is not:

1. After its time `Overrun` is raised in it: Python and its regular expressions check for signals.
2. Native code does not check. After twice the time the kernel ends the process (SIGPROF). The step
   was stored before, and the process that replaces this one reads it (`begin`).

The time is CPU time of the process, so that a busy or frozen machine ends nothing.

To set and stop timers for each step costs more than many steps take. So the timers run for many
steps (`timers`) and tick: a step that is found at several ticks in a row has used up its time, and
the time until the kernel ends the process restarts at each tick that finds another step.
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
"""The bytes that are stored of a step."""
_TRACE_BYTES = 20_000

_TICKS = 8
"""The number of ticks in a row at which a step may be found."""

_files: list[IO[bytes]] = []
"""One for each process of the pool, created before them, so that its successor has it too."""
_steps: list[mmap] = []
"""Likewise: shared memory in which each process stores its current step."""


class Overrun(BaseException):
    """A step took too much CPU time. Not an Exception, so that no `except Exception` catches it."""


class _Watch:
    """The current step of this process, and how often a tick has found it."""

    def __init__(self) -> None:
        self.place: mmap | None = None
        """The memory for the step; None: the process has no place in a pool."""
        self.seconds = 0.0
        """The seconds that a step may take; 0: the timers are off."""
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
        self._restart_last_timer()
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds / _TICKS, seconds / _TICKS)

    def disarm(self) -> None:
        """Stop the timers."""
        self.seconds = 0.0
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)

    def enter(self, step: bytes) -> None:
        """Store the step that begins."""
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
        """Raise Overrun if the step has used up its time; again at each later tick, in case
        something has swallowed it.
        """
        if not self.step or self.step != self.found:
            self.found, self.again = self.step, 0
            self._restart_last_timer()
            return
        self.again += 1
        if self.again >= _TICKS:
            raise Overrun

    def _restart_last_timer(self) -> None:
        if self.place is not None:
            signal.setitimer(signal.ITIMER_PROF, 2 * self.seconds)


_watch = _Watch()


def prepare(count: int) -> None:
    """Create the files and memory for `count` processes; called by the process that starts them."""
    _files[:] = [tempfile.TemporaryFile() for _ in range(count)]  # noqa: SIM115 - kept open
    _steps[:] = [mmap(-1, _STEP_BYTES) for _ in range(count)]


def begin(index: int) -> bytes:
    """Take a place in the pool; return the step that ended its last process, b"" if none did."""
    if index >= len(_files):
        return b""
    place = _watch.place = _steps[index]
    step = b"" if place[0] == 0 else place[:].rstrip(b"\0")
    place[0] = 0
    file = _files[index].fileno()
    trace = os.pread(file, _TRACE_BYTES, 0).decode(errors="replace")
    os.ftruncate(file, 0)
    os.lseek(file, 0, os.SEEK_SET)
    # Writes the traceback even while native code runs, and then lets the signal end the process.
    faulthandler.register(signal.SIGPROF, file=file, chain=True)
    if not trace:
        return b""  # it ended for another reason
    log.error("process.overrun", trace=trace)
    return step


@contextmanager
def timers(seconds: float) -> Iterator[None]:
    """Run the timers for all steps inside, each of which may take `seconds`."""
    if _watch.seconds or not _is_main_thread():
        yield
        return
    _watch.arm(seconds)
    try:
        yield
    finally:
        _watch.disarm()


class TimedStep(AbstractContextManager[None]):
    """Raises Overrun in a step that takes longer (up to an eighth late), and ends the process where
    that cannot be raised. Inside of `timers` their time counts.

    Only in the main thread, where signals arrive; processes are ended only in a pool.
    """

    __slots__ = ("own", "seconds", "step")

    def __init__(self, seconds: float, step: bytes) -> None:
        """`step` is returned by `begin` if the process is ended."""
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
