"""Time limits of single statements, for callers that wait no longer.

PostgreSQL's own `statement_timeout` would need one more statement for each call. Here a thread of
the process checks ten times a second whether the time of a running statement is over, and cancels
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
"""The connection to a server that does not cancel a statement within this time is closed."""


class StatementLate(Exception):
    """A statement was cancelled because its time was over."""


class Watchdog:
    """Cancels statements of this process whose time is over."""

    def __init__(self) -> None:
        self._watched: dict[int, tuple[float, psycopg.Connection[Any]]] = {}
        self._lock = threading.Lock()
        self._work = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, until: float, raw: "psycopg.Connection[Any]") -> float | None:
        """Cancel the connection's statement after `until`, a moment of the monotonic clock.

        Return the moment that was set before.
        """
        with self._lock:
            entry = self._watched.get(id(raw))
            earlier = min(until, entry[0]) if entry else until
            self._watched[id(raw)] = (earlier, raw)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
                self._thread.start()
        self._work.set()
        return entry[0] if entry else None

    def leave(self, raw: "psycopg.Connection[Any]", outer: float | None) -> None:
        """Restore what was set before, so that the connection's next statement is not cancelled."""
        with self._lock:
            if outer is None:
                self._watched.pop(id(raw), None)
            elif id(raw) in self._watched:  # else its statement was cancelled already
                self._watched[id(raw)] = (outer, raw)

    def pause(self, raw: "psycopg.Connection[Any]") -> float | None:
        """Stop watching a connection; return the moment that was set."""
        with self._lock:
            entry = self._watched.pop(id(raw), None)
            return entry[0] if entry else None

    def _run(self) -> None:
        while True:
            self._work.wait()
            time.sleep(EVERY_SECONDS)
            with self._lock:
                if not self._watched:
                    self._work.clear()
                now = time.monotonic()
                overdue = [raw for until, raw in self._watched.values() if until <= now]
                for raw in overdue:
                    # under the lock, so that no other statement begins meanwhile
                    self._cancel(raw)
                    del self._watched[id(raw)]

    def _cancel(self, raw: "psycopg.Connection[Any]") -> None:
        try:
            raw.cancel_safe(timeout=FROZEN_SECONDS)
        except psycopg.Error as error:
            log.warning("watchdog.failed", error=type(error).__name__)


_watchdog = Watchdog()


def _start_anew() -> None:
    global _watchdog  # noqa: PLW0603 - after a fork the thread is the parent's
    _watchdog = Watchdog()


os.register_at_fork(after_in_child=_start_anew)


@contextmanager
def unbounded() -> Iterator[Any]:
    """Yield a cursor whose statements are never cancelled, for clean-up."""
    with connection.cursor() as cursor:
        raw = connection.connection
        outer = _watchdog.pause(raw)
        try:
            with availability.as_usual():
                yield cursor
        finally:
            if outer is not None:
                _watchdog.watch(outer, raw)


@contextmanager
def bounded(until: float) -> Iterator[Any]:
    """Yield a cursor whose statements are cancelled after a moment of the monotonic clock.

    Raises StatementLate then; at once if the moment is past.
    """
    if until <= time.monotonic():
        raise StatementLate
    watchdog = _watchdog
    with connection.cursor() as cursor:
        raw = connection.connection
        outer = watchdog.watch(until, raw)
        try:
            with availability.within(until - time.monotonic() + FROZEN_SECONDS):
                yield cursor
        except OperationalError as error:
            if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
                raise StatementLate from error
            raise
        finally:
            watchdog.leave(raw, outer)
