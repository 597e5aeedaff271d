"""What every process of a worker does around its tasks.

A task starts with an open connection to PostgreSQL. If the database is away, the task waits for it
for some seconds and then leaves its work to the next hint: no work depends on a single task. The
outcomes of tasks go into the heartbeat.

If an expected task does not arrive (the broker, Redis or beat is away), each process polls
PostgreSQL every few seconds, by the same functions. In a process, only a poll or a task runs at a
time.
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
from django.conf import settings
from django.db import OperationalError, connections

from rme.core.db import availability, locks
from rme.core.process import liveness, memory, threads
from rme.core.process.turns import ThreadTurn
from rme.core.redis import heartbeats, hints
from rme.core.telemetry import process_gauges
from rme.core.telemetry.meters import Counter, Histogram

log = structlog.get_logger(__name__)

TASKS = Counter("rme_tasks_total", "Tasks that workers ended, by outcome.", ["task", "outcome"])
TASK_SECONDS = Histogram(
    "rme_task_seconds",
    "How long tasks ran, those that failed included.",
    ["task"],
    (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)

Job = Callable[[], object]
SLOTS = 1024
_MOMENT = struct.Struct("d")

WAIT_SECONDS = 10.0
"""How long a task waits for the database before it leaves its work to the next hint."""
PAUSE_SECONDS = 0.5
"""The pause between two tries of a task: the failure may be a full disk."""
IDLE_SECONDS = 3.0
"""The lateness after which a task is run without an order, and the interval of these runs."""
MISSED_SECONDS = 10.0
"""The lateness after which health reports that the broker or beat is away."""
BUSY_SECONDS = 1.0
"""A poll that took longer found work: the next follows at once."""
FAILURE_SECONDS = 60.0
"""How long a failure is reported, unless the task succeeds in the same process before."""
FREQUENT_SECONDS = 10.0
"""Periodic tasks with longer intervals are not run without beat: none of them is urgent."""


class Arrivals:
    """The time of each task's last arrival in any of the processes forked from one worker.

    They share the memory. Times are of the monotonic clock, which is the machine's.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, SLOTS * _MOMENT.size)

    def note(self, task: str) -> None:
        _MOMENT.pack_into(self._memory, slot(task), time.monotonic())

    def age(self, task: str) -> float:
        (at,) = _MOMENT.unpack_from(self._memory, slot(task))
        return time.monotonic() - float(at)


def slot(task: str) -> int:
    """Return the offset of a task's time in the shared memory. No two tasks may have the same."""
    return zlib.crc32(task.encode()) % SLOTS * _MOMENT.size


@dataclass(frozen=True, slots=True)
class Expected:
    """A task that this process runs itself if it does not arrive."""

    task: str
    """Its name and arguments."""
    job: Job
    every: float = 0.0
    """The interval in seconds at which beat orders it; 0 for one that arrives only with work."""

    def is_late(self, seconds: float) -> bool:
        return arrivals.age(self.task) > self.every + seconds


class TaskRecord:
    """The outcomes of this process's tasks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        self._failures: dict[str, tuple[str, float]] = {}
        self._works = True

    def succeeded(self, task: str) -> None:
        TASKS.add(task, "succeeded")
        with self._lock:
            self._failures.pop(task, None)
            self._works = True

    def failed(self, task: str, error: BaseException) -> None:
        TASKS.add(task, "failed")
        with self._lock:
            self._failures[task] = (type(error).__name__, time.monotonic())
            self._works = False

    def heartbeat(self, *, unprompted: bool) -> heartbeats.Heartbeat:
        now = time.monotonic()
        with self._lock:
            self._failures = {
                task: (error, at)
                for task, (error, at) in self._failures.items()
                if now - at < FAILURE_SECONDS
            }
            failing = {task: error for task, (error, _) in self._failures.items()}
            works = self._works or not failing
        return heartbeats.Heartbeat(
            f"{socket.gethostname()}:{os.getpid()}", failing, works=works, unprompted=unprompted
        )


arrivals = Arrivals()
record = TaskRecord()
_turn = ThreadTurn()
"""The turn of the running task or poll: they share the process's transport."""
_stopped = threading.Event()


# --- tasks ----------------------------------------------------------------------------------------


class WorkerTask(Task[..., Any]):
    """The base of all tasks. A task that is called as a function is only the function."""

    abstract = True
    at_most_every: float | None = None
    """The seconds within which a second hint returns at once, because it would find nothing new."""
    proves_alive: str | None = None
    """The process that is alive if it orders the task (`heartbeats.mark_alive`)."""

    def __call__(self, *args: object, **kwargs: object) -> object:
        if self.request.called_directly:
            return super().__call__(*args, **kwargs)
        key = " ".join([self.name, *map(str, args)])
        arrivals.note(key)
        if self.at_most_every and not hints.is_first(self.name, self.at_most_every):
            return None
        with _turn, _counting_as_alive(self.name):
            try:
                return perform(self.name, partial(self._carry_out, *args, **kwargs))
            finally:
                arrivals.note(key)

    def _carry_out(self, *args: object, **kwargs: object) -> object:
        result = self.run(*args, **kwargs)
        if self.proves_alive:
            heartbeats.mark_alive(self.proves_alive)
        return result


@contextmanager
def _counting_as_alive(task: str) -> Iterator[None]:
    """Let the process count as alive until the task's time limit."""
    limit = getattr(current_app.tasks.get(task), "time_limit", None)
    liveness.extend(limit or current_app.conf.task_time_limit)
    try:
        yield
    finally:
        liveness.extend()


def perform(name: str, job: Job, seconds: float = WAIT_SECONDS) -> object:
    """Run a task with an open connection, and again once the database is back.

    Raises what the task raises, unless the database is away.
    """
    until = time.monotonic() + seconds
    while True:
        availability.refresh()
        try:
            result = _measure(name, job)
        except MemoryError as error:
            threads.end_process("a task had no memory", task=name, error=str(error))
        except Exception as error:
            record.failed(name, error)
            hints.forget(name)
            if not availability.is_unavailable(error):
                raise
            availability.count_failure(error)
            availability.discard(error)
            sqlstate = getattr(error.__cause__, "sqlstate", None)
            log.warning(
                "task.database_away", task=name, error=type(error).__name__, sqlstate=sqlstate
            )
            time.sleep(PAUSE_SECONDS)
            remaining = until - time.monotonic()
            if remaining <= 0 or not availability.wait_until_writable(remaining):
                return None
        else:
            record.succeeded(name)
            liveness.note_success()
            return result


def _measure(name: str, job: Job) -> object:
    """Run a job, and count how long that took. Raises MemoryError where the database only seems
    away.
    """
    started = time.monotonic()
    try:
        return job()
    except OperationalError:
        memory.require_room()
        raise
    finally:
        TASK_SECONDS.observe(time.monotonic() - started, name)


# --- work without an order ------------------------------------------------------------------------


def queues(app: Celery | None = None) -> set[str]:
    """Return the queues that this worker consumes."""
    return set((app or current_app).amqp.queues.consume_from)


def periodic(app: Celery | None = None) -> list[Expected]:
    """Return the frequent periodic tasks whose queues this worker consumes."""
    app = app or current_app
    own_queues, tasks = queues(app), []
    for entry in app.conf.beat_schedule.values():
        task = app.tasks[entry["task"]]
        queue = entry.get("options", {}).get("queue") or getattr(task, "queue", None)
        if (
            entry["schedule"] < FREQUENT_SECONDS
            and (queue or app.conf.task_default_queue) in own_queues
        ):
            job = partial(_alone, task.name, task.run)
            tasks.append(Expected(task.name, job, float(entry["schedule"])))
    return tasks


def _alone(name: str, job: Job) -> None:
    """Run a job that beat orders once for all workers, unless another process is running it."""
    with locks.alone(f"unprompted {name}") as has_lock:
        if has_lock:
            job()


def begin(sends: Sequence[Expected]) -> None:
    """Start the threads that store heartbeats and run expected tasks that did not arrive.

    Each process runs `sends`; periodic tasks are run by one process at a time.
    """
    expected = [*periodic(), *sends]
    for task in expected:
        arrivals.note(task.task)
    _stopped.clear()
    liveness.begin(settings.VAR, ",".join(sorted(queues())))
    for name, run in (("heartbeat", _beat), ("unprompted", _poll)):
        threads.start(run, expected, name=name)


def end(seconds: float) -> None:
    """Stop polling; wait for a poll that is running, up to `seconds`."""
    _stopped.set()
    _turn.wait_until_free(seconds)


def _beat(expected: Sequence[Expected]) -> None:
    worker_queues, starts = queues(), threads.StartWatch()
    while True:
        unprompted = any(each.every and each.is_late(MISSED_SECONDS) for each in expected)
        heartbeats.store(record.heartbeat(unprompted=unprompted))
        process_gauges.store(process_gauges.WORKER, worker_queues)
        starts.look()
        time.sleep(heartbeats.EVERY_SECONDS)


def _poll(expected: Sequence[Expected]) -> None:
    while not _stopped.wait(IDLE_SECONDS):
        took = IDLE_SECONDS
        while took > BUSY_SECONDS and not _stopped.is_set():
            started = time.monotonic()
            run_late([each for each in expected if each.is_late(IDLE_SECONDS)])
            took = time.monotonic() - started


def run_late(tasks: Sequence[Expected]) -> None:
    """Run late tasks one by one; a task that arrives meanwhile runs between them."""
    for expected in tasks:
        with _turn, _counting_as_alive(expected.task):
            if _stopped.is_set():
                return
            try:
                perform(expected.task, expected.job)
            except Exception:  # no task's log has the failures of a thread
                log.exception("unprompted.failed", task=expected.task)
            finally:
                connections.close_all()
