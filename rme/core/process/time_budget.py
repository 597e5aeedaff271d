"""Limits on the CPU time of steps, and the record of the step in which a process was ended.

A step that processes untrusted input has to be short. If it is not:

1. After its time `StepOverrun` is raised in it. Python and its regular expressions look for
   signals.
2. Native code does not. After twice the time the kernel ends the process (SIGPROF). The step
   was stored before, and the process that replaces this one reads it (`ProcessPlace.take`).

The time is CPU time of the process, so that a busy or frozen machine ends nothing.

To set and stop timers for each step costs more than many steps take. So the timers run for many
steps (`StepTimers.running`) and tick: a step that is found at several ticks in a row has used up
its time, and the time until the kernel ends the process restarts at each tick that finds another
step.

A process has one `StepTimers`; in a pool it has a `ProcessPlace`, which outlives it.
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

import structlog

log = structlog.get_logger(__name__)

_STEP_BYTES = 1024
"""The bytes that are stored of a step."""
_TRACE_BYTES = 20_000

_TICKS = 8
"""The number of ticks in a row at which a step may be found."""


class StepOverrun(BaseException):
    """A step took too much CPU time. Not an Exception, so that no `except Exception` catches it."""


class ProcessPlace:
    """A place of a process in a pool: memory with the current step, and a file for the traceback.

    The process that starts the pool makes it, so that each process in this place has the same.
    """

    def __init__(self) -> None:
        self._step = mmap(-1, _STEP_BYTES)
        self._trace, path = tempfile.mkstemp()
        os.unlink(path)

    def take(self) -> bytes:
        """Take the place; return the step that ended its last process, b"" if none did."""
        step = b"" if self._step[0] == 0 else self._step[:].rstrip(b"\0")
        self.clear()
        trace = os.pread(self._trace, _TRACE_BYTES, 0).decode(errors="replace")
        os.ftruncate(self._trace, 0)
        os.lseek(self._trace, 0, os.SEEK_SET)
        # Even while native code runs, it writes the traceback. Then the signal ends the process.
        faulthandler.register(signal.SIGPROF, file=self._trace, chain=True)
        if not trace:
            return b""  # it ended for another reason
        log.error("process.overrun", trace=trace)
        return step

    def store(self, step: bytes) -> None:
        """Store the step that begins."""
        self._step[:] = step[:_STEP_BYTES].ljust(_STEP_BYTES, b"\0")

    def clear(self) -> None:
        """Store that no step runs."""
        self._step[0] = 0


class StepTimers:
    """The timers of a process, its current step, and how often a tick has found that."""

    def __init__(self, place: ProcessPlace | None = None) -> None:
        """Without a place, nothing ends the process."""
        self.place = place
        self._seconds = 0.0
        """The seconds that a step may take; 0: the timers are off."""
        self._count = 0
        self._step = 0
        """The step's number; 0 between steps."""
        self._found = 0
        """The step that the last tick found."""
        self._again = 0
        """How many ticks in a row found that step again."""

    @property
    def are_on(self) -> bool:
        return self._seconds > 0

    @contextmanager
    def running(self, seconds: float) -> Iterator[None]:
        """Run the timers for all steps inside; each step may take `seconds`."""
        if self.are_on or not _is_main_thread():
            yield
            return
        self._seconds, self._found = seconds, 0
        signal.signal(signal.SIGVTALRM, self._tick)
        self._restart_last_timer()
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds / _TICKS, seconds / _TICKS)
        try:
            yield
        finally:
            self._seconds = 0.0
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.setitimer(signal.ITIMER_PROF, 0)

    def enter(self, step: bytes) -> None:
        """Begin a step."""
        if self.place is not None:
            self.place.store(step)
        self._count += 1
        self._step = self._count

    def leave(self) -> None:
        """End the step."""
        self._step = 0
        if self.place is not None:
            self.place.clear()

    def _tick(self, *_: object) -> None:
        """Raise StepOverrun if the step has used up its time; again at each later tick, in case
        something has swallowed it.
        """
        if not self._step or self._step != self._found:
            self._found, self._again = self._step, 0
            self._restart_last_timer()
            return
        self._again += 1
        if self._again >= _TICKS:
            raise StepOverrun

    def _restart_last_timer(self) -> None:
        if self.place is not None:
            signal.setitimer(signal.ITIMER_PROF, 2 * self._seconds)


class TimedStep(AbstractContextManager[None]):
    """Raises StepOverrun in a step that takes longer (up to an eighth late), and ends the process
    where that cannot be raised. Inside of `StepTimers.running` their time counts.

    Only in the main thread, where signals arrive; processes are ended only in a pool.
    """

    __slots__ = ("own", "seconds", "step", "timers")

    def __init__(self, timers: StepTimers, seconds: float, step: bytes) -> None:
        """`step` is returned by `ProcessPlace.take` if the process is ended."""
        self.timers, self.seconds, self.step = timers, seconds, step
        self.own: ExitStack | None = None

    def __enter__(self) -> None:
        if not _is_main_thread():
            return
        if not self.timers.are_on:
            self.own = ExitStack()
            self.own.enter_context(self.timers.running(self.seconds))
        self.timers.enter(self.step)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not _is_main_thread():
            return
        self.timers.leave()
        if self.own:
            self.own.close()


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
