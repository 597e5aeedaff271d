"""A bound on how long a statement may take, where a caller waits no longer.

PostgreSQL's own `statement_timeout` would be a statement more for every call. Here one thread of
the process looks ten times a second whether the time of a statement in hand is over, and cancels
it.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import structlog
from django.db import OperationalError, connection

from rme.core.db import availability

log = structlog.get_logger(__name__)

EVERY_SECONDS = 0.1
FROZEN_SECONDS = 0.3
"""A server that did not even cancel a statement after so long is given up."""


class StatementLate(Exception):
    """A statement was cancelled, because its time was over."""


class Watchdog:
    """Cancels statements of this process whose time is over."""

    def __init__(self) -> None:
        self._watched: dict[int, tuple[float, psycopg.Connection[Any]]] = {}
        self._lock = threading.Lock()
        self._work = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, until: float, raw: "psycopg.Connection[Any]") -> float | None:
        """Cancel what a connection does once a moment of the monotonic clock is past.

        Gives the moment that held so far.
        """
        with self._lock:
            before = self._watched.get(id(raw))
            earlier = min(until, before[0]) if before else until
            self._watched[id(raw)] = (earlier, raw)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
                self._thread.start()
        self._work.set()
        return before[0] if before else None

    def leave(self, raw: "psycopg.Connection[Any]", before: float | None) -> None:
        """Watch a connection as before, or no longer: what it does next is not cancelled."""
        with self._lock:
            if before is None:
                self._watched.pop(id(raw), None)
            elif id(raw) in self._watched:  # else it was cancelled, and that is enough
                self._watched[id(raw)] = (before, raw)

    def pause(self, raw: "psycopg.Connection[Any]") -> float | None:
        """Watch a connection no longer; gives the moment that held so far."""
        with self._lock:
            before = self._watched.pop(id(raw), None)
            return before[0] if before else None

    def _run(self) -> None:
        while True:
            self._work.wait()
            time.sleep(EVERY_SECONDS)
            with self._lock:
                if not self._watched:
                    self._work.clear()
                now = time.monotonic()
                late = [raw for until, raw in self._watched.values() if until <= now]
                for raw in late:
                    # under the lock: nobody begins another statement meanwhile
                    self._cancel(raw)
                    del self._watched[id(raw)]

    def _cancel(self, raw: "psycopg.Connection[Any]") -> None:
        try:
            raw.cancel_safe(timeout=FROZEN_SECONDS)
        except psycopg.Error as error:
            log.warning("watchdog.failed", error=type(error).__name__)


_own = Watchdog()


def _forget() -> None:
    global _own  # noqa: PLW0603 - after a fork the thread is the parent's
    _own = Watchdog()


os.register_at_fork(after_in_child=_forget)


@contextmanager
def unbounded() -> Iterator[Any]:
    """Give a cursor whose statements nobody cancels: what must be undone, whatever the time."""
    with connection.cursor() as cursor:
        raw = connection.connection
        before = _own.pause(raw)
        try:
            with availability.as_usual():
                yield cursor
        finally:
            if before is not None:
                _own.watch(before, raw)


@contextmanager
def bounded(until: float) -> Iterator[Any]:
    """Give a cursor whose statements are cancelled after a moment of the monotonic clock.

    Raises StatementLate, and before it asks anything if the moment is past.
    """
    if until <= time.monotonic():
        raise StatementLate
    watchdog = _own
    with connection.cursor() as cursor:
        raw = connection.connection
        before = watchdog.watch(until, raw)
        try:
            with availability.within(until - time.monotonic() + FROZEN_SECONDS):
                yield cursor
        except OperationalError as error:
            if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
                raise StatementLate from error
            raise
        finally:
            watchdog.leave(raw, before)
