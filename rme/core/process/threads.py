"""A pool of threads that prefers the thread used last, whose connections are still open; and ends
of processes that have no memory for a thread or a connection.
"""

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import NoReturn, ParamSpec, TypeVar

import structlog

from rme.core.process import memory

log = structlog.get_logger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

Job = Callable[[int], object]
"""Called with the number of the thread that runs it. Must not raise."""
LOOKS = 3
"""How many looks in a row may find a thread starting. It takes far less than the time of one."""


def end_process(reason: str, **details: object) -> NoReturn:
    """Log the reason and end this process as a kill would, for another one to take its place.

    For a process without memory: nothing that it still tries is reliable, and its deliveries are
    claimed again when their leases end.
    """
    try:
        log.critical("process.ended", reason=reason, **details)
    finally:
        os._exit(os.EX_SOFTWARE)


def require_room(reason: str) -> None:
    """End this process if it has no memory for another thread."""
    try:
        memory.require_room()
    except MemoryError as error:
        end_process(reason, error=str(error))


def start(work: Callable[..., object], *arguments: object, name: str) -> threading.Thread:
    """Start a thread that this process can't work without; end the process if that fails, or if
    the thread has no memory.
    """

    def run() -> None:
        try:
            work(*arguments)
        except MemoryError as error:
            end_process("a thread had no memory", thread=name, error=str(error))

    thread = threading.Thread(target=run, name=name, daemon=True)
    try:
        thread.start()
    except (RuntimeError, MemoryError) as error:  # the system has no room for another thread
        end_process("a thread cannot be started", thread=name, error=str(error))
    return thread


class Executor(ThreadPoolExecutor):
    """An executor that ends the process if it has no memory for a thread.

    Its queue would keep the call for ever, and the caller would wait for it.
    """

    def submit(self, call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        try:
            return super().submit(call, *args, **kwargs)
        except (RuntimeError, MemoryError):
            require_room("a thread cannot be started")
            raise


class StartWatch:
    """Ends the process if a thread has died while it started.

    Without memory a new thread may end before it reports its start. `Thread.start` then waits
    for it forever, with all locks that its caller holds.
    """

    def __init__(self) -> None:
        self._looks: dict[threading.Thread, int] = {}

    def look(self) -> None:
        """Look for such threads. Call this every few seconds, from a thread that already runs."""
        starting = [each for each in threading.enumerate() if not each.is_alive()]
        self._looks = {each: self._looks.get(each, 0) + 1 for each in starting}
        if dead := [each.name for each, looks in self._looks.items() if looks >= LOOKS]:
            end_process("a thread died while it started", threads=dead)


class Threads:
    """A bounded number of threads, started when they are needed; further jobs wait."""

    def __init__(self, limit: int, name: str) -> None:
        self._limit, self._name = limit, name
        self._lock = threading.Lock()
        self._started = 0
        self._idle: list[SimpleQueue[Job]] = []
        self._waiting: deque[Job] = deque()

    def submit(self, job: Job) -> None:
        """Run a job in the thread that was used last, in a new one, or once one is free."""
        with self._lock:
            if self._idle:
                self._idle.pop().put(job)
            elif self._started < self._limit:
                number, self._started = self._started, self._started + 1
                inbox: SimpleQueue[Job] = SimpleQueue()
                inbox.put(job)
                start(self._work, inbox, number, name=f"{self._name} {number}")
            else:
                self._waiting.append(job)

    def _work(self, inbox: "SimpleQueue[Job]", number: int) -> None:
        while True:
            inbox.get()(number)
            with self._lock:
                if self._waiting:
                    inbox.put(self._waiting.popleft())
                else:
                    self._idle.append(inbox)
