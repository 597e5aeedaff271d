"""What every process of a worker does around its tasks.

A task begins with a connection to PostgreSQL that is open. One that finds the database away waits
for it, for some seconds, and then leaves its work to the next hint: a task is never the only way to
its work. What became of tasks goes into the heartbeat.

Where a task does not come that should (the broker, Redis or beat is away), each process asks
PostgreSQL by itself every few seconds, by the same functions. Its thread and its tasks take turns.
"""

import mmap
import os
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog
from celery import Celery, Task, current_app
from django.db import connections

from rme.core.db import availability, locks
from rme.core.redis import counters, heartbeats, hints

log = structlog.get_logger(__name__)

Job = Callable[[], object]
SLOTS = 1024
_MOMENT = struct.Struct("d")

WAIT_SECONDS = 10.0
"""How long a task waits for the database before it leaves its work to the next hint."""
PAUSE_SECONDS = 0.5
"""Between two tries of a task: what fails may be a disk that is full."""
IDLE_SECONDS = 3.0
"""A task that is so late is done without having come, and so often."""
MISSED_SECONDS = 10.0
"""One that is so late is missed: health says that the broker or beat is away."""
BUSY_SECONDS = 1.0
"""A look that took longer found work: the next follows at once."""
FADE_SECONDS = 60.0
"""A failure is told for so long, unless the task succeeds in the same process before."""
FREQUENT_SECONDS = 10.0
"""Periodic tasks that come seldomer are not done without beat: none of them is urgent."""


class Arrivals:
    """When each task came last to any process of the workers that were forked from one.

    In memory that they share from then on; the monotonic clock is the machine's.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, SLOTS * _MOMENT.size)

    def note(self, task: str) -> None:
        _MOMENT.pack_into(self._memory, slot(task), time.monotonic())

    def age(self, task: str) -> float:
        (at,) = _MOMENT.unpack_from(self._memory, slot(task))
        return time.monotonic() - float(at)


def slot(task: str) -> int:
    """Return where the moment of a task stands. No two of ours may have the same."""
    return zlib.crc32(task.encode()) % SLOTS * _MOMENT.size


@dataclass(frozen=True, slots=True)
class Expected:
    """A task that this process would do if none came."""

    task: str
    """Its name, with what it is given."""
    job: Job
    every: float = 0.0
    """How often beat orders it; 0 for one that comes only where there is work."""

    def is_late(self, seconds: float) -> bool:
        return arrivals.age(self.task) > self.every + seconds


class TaskRecord:
    """What became of the tasks of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        self._failures: dict[str, tuple[str, float]] = {}
        self._works = True

    def succeeded(self, task: str) -> None:
        counters.add("rme_tasks_total", task, "succeeded")
        with self._lock:
            self._failures.pop(task, None)
            self._works = True

    def failed(self, task: str, error: BaseException) -> None:
        counters.add("rme_tasks_total", task, "failed")
        with self._lock:
            self._failures[task] = (type(error).__name__, time.monotonic())
            self._works = False

    def heartbeat(self, *, unprompted: bool) -> heartbeats.Heartbeat:
        now = time.monotonic()
        with self._lock:
            self._failures = {
                task: (error, at)
                for task, (error, at) in self._failures.items()
                if now - at < FADE_SECONDS
            }
            failing = {task: error for task, (error, _) in self._failures.items()}
            works = self._works or not failing
        return heartbeats.Heartbeat(
            f"{socket.gethostname()}:{os.getpid()}", failing, works=works, unprompted=unprompted
        )


class _Unprompted(threading.local):
    value = False


arrivals = Arrivals()
record = TaskRecord()
_turn = threading.Lock()
"""Of the task in hand, or of the look without one: what they send by is one process's."""
_unprompted = _Unprompted()
_stopped = threading.Event()


# --- tasks ----------------------------------------------------------------------------------------


class WorkerTask(Task):  # type: ignore[type-arg]
    """The base of all tasks. One that is called as a function is only that."""

    abstract = True
    at_most_every: float | None = None
    """Seconds within which a second hint finds nothing new, and returns at once."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.request.called_directly:
            return super().__call__(*args, **kwargs)
        named = " ".join([self.name, *map(str, args)])
        arrivals.note(named)
        if self.at_most_every and not hints.is_first(self.name, self.at_most_every):
            return None
        with _turn:
            try:
                return perform(self.name, partial(self.run, *args, **kwargs))
            finally:
                arrivals.note(named)


def perform(name: str, job: Job, seconds: float = WAIT_SECONDS) -> Any:
    """Run a task with a connection that is open, and again once the database is back.

    Raises what the task raises, unless the database is away.
    """
    until = time.monotonic() + seconds
    while True:
        availability.refresh()
        try:
            result = job()
        except Exception as error:
            record.failed(name, error)
            hints.forget(name)
            if not availability.is_unavailable(error):
                raise
            availability.discard(error)
            sqlstate = getattr(error.__cause__, "sqlstate", None)
            log.warning(
                "task.database_away", task=name, error=type(error).__name__, sqlstate=sqlstate
            )
            time.sleep(PAUSE_SECONDS)
            left = until - time.monotonic()
            if left <= 0 or not availability.wait_until_writable(left):
                return None
        else:
            record.succeeded(name)
            return result


def is_unprompted() -> bool:
    """Return whether what runs was not ordered by a task."""
    return _unprompted.value


# --- work that nobody ordered ---------------------------------------------------------------------


def queues(app: Celery | None = None) -> set[str]:
    """Return the queues that this worker consumes."""
    return set((app or current_app).amqp.queues.consume_from)


def periodic(app: Celery | None = None) -> list[Expected]:
    """Return the frequent periodic tasks whose queues this worker consumes."""
    app = app or current_app
    own, found = queues(app), []
    for entry in app.conf.beat_schedule.values():
        task = app.tasks[entry["task"]]
        queue = entry.get("options", {}).get("queue") or getattr(task, "queue", None)
        if entry["schedule"] < FREQUENT_SECONDS and (queue or app.conf.task_default_queue) in own:
            job = partial(_alone, task.name, task.run)
            found.append(Expected(task.name, job, float(entry["schedule"])))
    return found


def _alone(name: str, job: Job) -> None:
    """Do what beat would order once for all workers, unless another does it now."""
    with locks.alone(f"unprompted {name}") as alone:
        if alone:
            job()


def begin(sends: Sequence[Expected]) -> None:
    """Leave heartbeats from now on, and do what should have come and did not.

    `sends` are looked for by every process, periodic tasks by one of all.
    """
    expected = [*periodic(), *sends]
    for each in expected:
        arrivals.note(each.task)
    _stopped.clear()
    for name, run in (("heartbeat", _beat), ("unprompted", _look)):
        threading.Thread(target=run, args=(expected,), name=name, daemon=True).start()


def end(seconds: float) -> None:
    """Look no more; waits for a look under way."""
    _stopped.set()
    if _turn.acquire(timeout=seconds):
        _turn.release()


def _beat(expected: Sequence[Expected]) -> None:
    while True:
        unprompted = any(each.every and each.is_late(MISSED_SECONDS) for each in expected)
        heartbeats.store(record.heartbeat(unprompted=unprompted))
        time.sleep(heartbeats.EVERY_SECONDS)


def _look(expected: Sequence[Expected]) -> None:
    while not _stopped.wait(IDLE_SECONDS):
        took = IDLE_SECONDS
        while took > BUSY_SECONDS and not _stopped.is_set():
            started = time.monotonic()
            look([each for each in expected if each.is_late(IDLE_SECONDS)])
            took = time.monotonic() - started


def look(late: Sequence[Expected]) -> None:
    """Do what there is to do, task by task; one that comes meanwhile has its turn between."""
    for each in late:
        with _turn, _without_order():
            if _stopped.is_set():
                return
            try:
                perform(each.task, each.job)
            except Exception:  # no task's log hears of a thread
                log.exception("unprompted.failed", task=each.task)
            finally:
                connections.close_all()


@contextmanager
def _without_order() -> Iterator[None]:
    _unprompted.value = True
    try:
        yield
    finally:
        _unprompted.value = False
