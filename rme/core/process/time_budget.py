"""Steps that may take only so much CPU time, and which step a process was ended in.

A step that works on what strangers wrote is meant to be short. Should it not be:

1. After its time `Overrun` is raised in it. Python and its regular expressions look for signals.
2. Native code does not. After twice the time the kernel ends the process (SIGPROF), wherever it is.
   The step was written down before, and the process that takes the place reads it (`begin`).

CPU time of the process, not time on the wall: a busy or frozen machine must not end anything.
"""

import faulthandler
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import structlog

log = structlog.get_logger(__name__)

_STEP_BYTES = 4096
"""What is written down of a step, before the place where the traceback goes."""
_TRACE_BYTES = 20_000

_files: list[IO[bytes]] = []
"""One for each process of the pool, made before they are, so that the next one has it too."""
_own: int | None = None
"""The descriptor of this process's file."""


class Overrun(BaseException):
    """A step took too much CPU time. No `except Exception` on the way takes it for its own."""


def prepare(count: int) -> None:
    """Make room for the steps of so many processes; for the process that starts them."""
    _files[:] = [tempfile.TemporaryFile() for _ in range(count)]  # noqa: SIM115 - kept open


def begin(index: int) -> bytes:
    """Take the place of a pool's process; return the step that ended the one before, if one did."""
    global _own  # noqa: PLW0603 - a process has one place
    if index >= len(_files):
        return b""
    _own = _files[index].fileno()
    step = os.pread(_own, _STEP_BYTES, 0).rstrip(b"\0")
    trace = os.pread(_own, _TRACE_BYTES, _STEP_BYTES).decode(errors="replace")
    os.ftruncate(_own, 0)
    os.lseek(_own, _STEP_BYTES, os.SEEK_SET)
    # It writes without waiting for native code, and then lets the signal end the process.
    faulthandler.register(signal.SIGPROF, file=_own, chain=True)
    if not trace:
        return b""  # it ended by something else
    log.error("process.overrun", trace=trace)
    return step


@contextmanager
def limited(seconds: float, step: bytes) -> Iterator[None]:
    """Raise Overrun in what takes longer; end the process where that cannot be raised.

    Only where signals arrive: in the main thread, and the second in a process of a pool.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGVTALRM, _interrupt)
    if _own is not None:
        os.pwrite(_own, step[:_STEP_BYTES].ljust(_STEP_BYTES, b"\0"), 0)
        signal.setitimer(signal.ITIMER_PROF, 2 * seconds)
    # again and again, should something on the way pass over it
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)


def _interrupt(*_: object) -> None:
    raise Overrun
