"""Errands: slow work on a tenant's input, in processes of their own.

Python cannot interrupt native code in a thread, and while such code runs no other thread does. So
work that may take more than a few milliseconds runs in a process that the kernel kills when the
errand's CPU time is used up; the next errand gets a new process. These processes start on demand,
give way to the service (`nice`), and exit when they are idle.

An organization has one errand at a time in each process of the service, and a budget of CPU time.

- `ERRANDS` renders and checks what a tenant wrote. Their processes load no settings.
- `SERVICE_ERRANDS` read and write tables: exports, and uploads of large files. Theirs load all of
  the service, which takes about two seconds.
- `HOST_ERRANDS` call a host that a person has typed, and store the result. They pay for the time on
  the clock, since a slow host takes nothing else. `rme.core.http.checks` starts them.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from threading import Event, Lock
from typing import Any, TypeVar, cast

import structlog

from rme.core.process import errand_process
from rme.core.process.admission import Budget, FairPool, Owners, too_many

log = structlog.get_logger(__name__)

R = TypeVar("R")

PROCESSES = 2
LINE_SIZE = 8
"""How many errands of one organization may wait."""
WAIT_SECONDS = 15.0
"""How long an errand waits for its turn."""
_WALL_FACTOR, _WALL_SECONDS, _WALL_LIMIT = 10.0, 5.0, 600.0
"""On a busy machine an errand takes longer by the clock than its CPU time."""
_OWN_ENDS = {-number for number in (signal.SIGPROF, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS)}
"""The exit codes of a process that its errand ended: its CPU time is used up, or it crashed."""


class Overrun(Exception):
    """An errand took too long, and its process was killed."""


class Killed(Overrun):
    """A process ended for a reason that isn't its errand: no memory, a deployment, a clock."""


@dataclass
class _Child:
    """A process that carries out errands."""

    process: "subprocess.Popen[bytes]"
    connection: Connection

    def end(self) -> None:
        """Kill the process, and wait for its end."""
        self.process.kill()
        self.connection.close()
        self.process.wait()


class Pieces:
    """The pieces of a long result, which a process makes while they are read."""

    def __init__(self, pieces: Generator[bytes, None, object]) -> None:
        """Wait for the first piece. Raises what the work raises before it."""
        self._pieces = pieces
        self._first = next(pieces, None)

    def __iter__(self) -> Iterator[bytes]:
        if self._first is not None:
            yield self._first
        yield from self._pieces

    def close(self) -> None:
        """End the work, if it isn't complete."""
        self._pieces.close()


class Errands:
    """Carries out errands, and charges their CPU time."""

    def __init__(
        self,
        budget: Budget,
        processes: int = PROCESSES,
        *,
        line: int = LINE_SIZE,
        service: bool = False,
        by_clock: bool = False,
        wall_limit: float = _WALL_LIMIT,
    ) -> None:
        """`service`: whether the errands use settings and models; `by_clock`: whether they are
        charged for the time on the clock, and not for their CPU time. No errand takes longer by
        the clock than `wall_limit`, in seconds.
        """
        self.budget = budget
        self._service = service
        self._by_clock = by_clock
        self._wall_limit = wall_limit
        self._pool = FairPool(processes, "errand", line=line, share=1)
        self._idle: list[_Child] = []
        self._lock = Lock()

    def run(self, organization: str, seconds: float, work: Callable[..., R], *args: object) -> R:
        """Return the result of work that gets `seconds` of CPU time, or raise its exception.

        The work is a function of a module; its arguments, result and exceptions can be pickled.
        Raises Overrun, and RateLimited if too many errands of the organization wait or if its
        budget is used up.
        """
        with self._turn(organization):
            return self._result(organization, seconds, work, args)

    def start(
        self, organization: str, seconds: float, work: Callable[..., R], *args: object
    ) -> "Future[R]":
        """Start the same, and return at once. Raises RateLimited; the future has all else."""
        self.budget.require(organization)
        return self._pool.submit(
            Owners(organization), lambda: self._result(organization, seconds, work, args)
        )

    def stream(
        self,
        organization: str,
        seconds: float,
        work: Callable[..., Iterator[bytes | str]],
        *args: object,
    ) -> Pieces:
        """Return the result of work that yields it. Raises the same, before the first piece.

        The process waits for the reader of the pieces, who has to close them.
        """

        def in_turn() -> Generator[bytes, None, object]:
            with self._turn(organization):
                return (yield from self._carry_out(organization, seconds, work, args))

        return Pieces(in_turn())

    @contextmanager
    def _turn(self, organization: str) -> Iterator[None]:
        """Enter the block when it is the organization's turn. Raises RateLimited."""
        started, ended = Event(), Event()

        def hold() -> None:
            started.set()
            ended.wait()

        self.budget.require(organization)
        future = self._pool.submit(Owners(organization), hold)
        if not started.wait(WAIT_SECONDS) and future.cancel():
            raise too_many()
        try:
            yield
        finally:
            ended.set()
            future.result()  # the turn is free for the next one

    def _result(self, organization: str, seconds: float, work: Callable[..., R], args: object) -> R:
        """Carry out an errand, and return its result."""
        pieces = self._carry_out(organization, seconds, work, args)
        try:
            next(pieces)
        except StopIteration as end:
            return cast(R, end.value)
        finally:
            pieces.close()
        raise TypeError(f"{work.__qualname__} returns pieces")

    def _carry_out(
        self, organization: str, seconds: float, work: Callable[..., object], args: object
    ) -> Generator[bytes, None, object]:
        """Yield the pieces of a long result, and return any other one."""
        used, child, started = seconds, None, time.monotonic()
        try:
            child = self._send((seconds, work, args))
            while True:
                used, kind, result = _receive(child, self._wall_seconds(seconds))
                if kind != "piece":
                    break
                yield result
            with self._lock:
                self._idle.append(child)
            child = None
        except Overrun:
            # A process may also end early: killed by a person, or because memory ran out.
            used = min(seconds, time.monotonic() - started)
            log.warning("errand.overrun", work=work.__qualname__, organization_id=organization)
            raise
        finally:
            if child:
                child.end()
            charged = time.monotonic() - started if self._by_clock else used
            self.budget.charge(organization, charged)
        if kind == "error":
            raise result
        return result

    def _wall_seconds(self, seconds: float) -> float:
        return min(_WALL_SECONDS + _WALL_FACTOR * seconds, self._wall_limit)

    def _send(self, errand: tuple[float, Callable[..., object], object]) -> _Child:
        """Send an errand to a process; return the process."""
        child = self._take()
        try:
            child.connection.send(errand)
        except OSError:  # it was idle, and has exited
            child.end()
            child = self._start()
            child.connection.send(errand)
        except BaseException:
            child.end()
            raise
        return child

    def _take(self) -> _Child:
        with self._lock:
            child = self._idle.pop() if self._idle else None
        if child is not None and child.process.poll() is None:
            return child
        if child is not None:
            child.end()
        return self._start()

    def _start(self) -> _Child:
        ours, theirs = multiprocessing.Pipe()
        with theirs:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", errand_process.__name__, str(theirs.fileno())),
                    *(["service"] if self._service else []),
                ],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        return _Child(process, ours)


def _receive(child: _Child, wall_seconds: float) -> tuple[float, str, Any]:
    """Return the next answer of a process. Raises Overrun if its errand ended it, and Killed if the
    machine is to blame.
    """
    with suppress(EOFError, ConnectionError):  # the process has ended
        if child.connection.poll(wall_seconds):
            answer: tuple[float, str, Any] = child.connection.recv()
            return answer
        child.process.kill()
    code = child.process.wait()
    child.end()
    raise Overrun if code in _OWN_ENDS else Killed


ERRANDS = Errands(Budget(rate=0.5, burst=5.0))
"""The errands of this process. The budget is in CPU seconds."""
SERVICE_ERRANDS = Errands(Budget(rate=0.25, burst=120.0), processes=3, line=1, service=True)
"""The errands of this process that use the database."""
HOST_ERRANDS = Errands(
    Budget(rate=0.2, burst=15.0), processes=3, line=1, service=True, by_clock=True
)
"""The errands of this process that call hosts which people have typed."""
