"""How long this process waits for PostgreSQL, and which of its failures mean that it is away.

A server that is frozen keeps its sockets open, so neither libpq nor TCP notices. Every statement
therefore has a bound on our side: Django's way by `BoundedConnection`, the direct one
(`rme.core.db.pipeline`) by `allowed()`. What outlasts it closes the connection. From then on one
caller at a time finds out whether PostgreSQL is back, and all others fail at once, so that the
threads of a web process stay free for what needs no database.

A process states its bound once (`limit`): the web and the workers do, commands do not.
"""

import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import structlog
from django.db import (
    DatabaseError,
    Error,
    InterfaceError,
    InternalError,
    OperationalError,
    connection,
    connections,
)
from psycopg import pq

log = structlog.get_logger(__name__)

RETRY_SECONDS = 1.0
"""How often is tried whether PostgreSQL is back."""
CHECK_SECONDS = 1.0
"""How long a connection that may be dead has to answer."""
SERVER_SHARE = 0.9
"""PostgreSQL itself cancels a statement after this share of the bound: the connection stays."""
READ_ONLY = "25006"

Raw = psycopg.Connection[Any]


# --- bounds ---------------------------------------------------------------------------------------


class _Process:
    """The bound of this process, in seconds; None: a statement may take as long as it needs."""

    limit: float | None = None


class _Thread(threading.local):
    """What holds for this thread instead."""

    until: float | None = None
    unlimited = False


_process, _thread = _Process(), _Thread()


def limit(seconds: float | None) -> None:
    """Set how long a statement of this process may take, before its first connection is made."""
    _process.limit = seconds


def server_options() -> str:
    """Return what PostgreSQL is told of the bound, as libpq's `options`."""
    if _process.limit is None:
        return ""
    milliseconds = int(_process.limit * SERVER_SHARE * 1000)
    # A backend whose client has given up ends within seconds, instead of working for nobody.
    return f" -c statement_timeout={milliseconds} -c client_connection_check_interval=2000"


def allowed() -> float | None:
    """Return the seconds that the next statement may take; None: as long as it needs."""
    if _thread.unlimited:
        return None
    if _thread.until is None:
        return _process.limit
    left = max(_thread.until - time.monotonic(), 0.0)
    return left if _process.limit is None else min(left, _process.limit)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Bound all statements of the block together, in this thread."""
    before = _thread.until
    until = time.monotonic() + seconds
    _thread.until = until if before is None else min(before, until)
    try:
        yield
    finally:
        _thread.until = before


@contextmanager
def as_usual() -> Iterator[None]:
    """Lift what `within` set: the block must run even where that time is over."""
    before, _thread.until = _thread.until, None
    try:
        yield
    finally:
        _thread.until = before


@contextmanager
def unlimited() -> Iterator[None]:
    """Lift the bound for what may take long, such as dropping a month, in this thread."""
    if _process.limit is None:
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
    _thread.unlimited = True
    try:
        yield
    finally:
        _thread.unlimited = False
        with connection.cursor() as cursor:
            cursor.execute("RESET statement_timeout")


class BoundedConnection(psycopg.Connection[Any]):
    """A psycopg connection whose statements end in time."""

    deallocations = 0
    """How often psycopg has dropped all prepared statements: its own, and with them others'."""

    @classmethod
    def connect(cls, *args: Any, **kwargs: Any) -> Any:
        """Connect, and note whether PostgreSQL could be reached."""
        try:
            made = super().connect(*args, **kwargs)
        except psycopg.OperationalError as error:
            if error.sqlstate is None or error.sqlstate.startswith("57P"):
                reach.lost(error)
            raise
        reach.found()
        return made

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Run a conversation with the server to its end, or to the end of its time."""
        bound = allowed()
        if bound is not None:
            timeout = bound if timeout is None else min(bound, timeout)
        try:
            answer = super().wait(gen, interval, timeout)
        except psycopg.OperationalError as error:
            if self.pgconn.transaction_status == pq.TransactionStatus.ACTIVE:
                self.give_up(error)
            raise
        reach.found()
        return answer

    def _deallocate(self, name: bytes | None) -> Any:
        """Count DEALLOCATE ALL, which psycopg sends after a rollback, DROP or ALTER."""
        if name is None:
            self.deallocations += 1
        return super()._deallocate(name)

    def give_up(self, error: psycopg.Error) -> None:
        """Close the connection: what is still answered on it would be taken for another answer."""
        self.close()
        reach.lost(error)


# --- whether PostgreSQL is there ------------------------------------------------------------------


class Reach:
    """Whether PostgreSQL answers this process. After a failure one caller at a time finds out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._away_until = 0.0

    def require(self) -> None:
        """Raise psycopg.OperationalError where PostgreSQL did not answer a moment ago."""
        if not self._away_until:
            return
        with self._lock:
            now = time.monotonic()
            if now < self._away_until:
                raise psycopg.OperationalError("PostgreSQL did not answer a moment ago")
            if self._away_until:  # this caller finds out: the others go on failing meanwhile
                self._away_until = now + (_process.limit or 0.0) + RETRY_SECONDS

    def lost(self, error: psycopg.Error) -> None:
        """Note that there was no answer. A command that waits for one goes on asking."""
        if _process.limit is None:
            return
        with self._lock:
            first = not self._away_until
            self._away_until = time.monotonic() + RETRY_SECONDS
        if first:
            log.warning("database.lost", error=type(error).__name__, sqlstate=error.sqlstate)

    def found(self) -> None:
        """Note that there was an answer."""
        if not self._away_until:
            return
        with self._lock:
            self._away_until = 0.0
        log.info("database.back")


reach = Reach()


def is_alive(raw: Raw) -> bool:
    """Return whether a connection at rest is still open; nothing is sent where all is well.

    A server that ends a connection closes its socket, mostly with a word of farewell: either can be
    read. What was not asked for may be harmless too, and then the server answers a question.
    """
    if raw.closed:
        return False
    if raw.pgconn.transaction_status != pq.TransactionStatus.IDLE:
        return True
    poll = select.poll()
    poll.register(raw.pgconn.socket, select.POLLIN)
    if not poll.poll(0):
        return True
    try:
        with within(CHECK_SECONDS):
            raw.execute("")
    except psycopg.Error:
        raw.close()
        return False
    return True


def refresh() -> None:
    """Let go of this thread's connections that are dead: the next statement opens another."""
    for each in connections.all(initialized_only=True):
        if each.connection is None or each.in_atomic_block:
            continue
        if not is_alive(each.connection):
            each.close()


def discard(error: BaseException | None = None) -> None:
    """Close this thread's connections for good: another may lead to whoever is the primary now.

    With an error only if that says that the server is read-only.
    """
    if error is not None and _sqlstate(error) != READ_ONLY:
        return
    for each in connections.all(initialized_only=True):
        if each.connection is not None and not each.in_atomic_block:
            each.connection.close()
            each.close()


def is_read_only() -> bool:
    """Return whether nothing can be written: a standby, or a primary being switched over."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('transaction_read_only')")
        return bool(cursor.fetchone()[0] == "on")


def wait_until_writable(seconds: float) -> bool:
    """Wait until PostgreSQL takes what is written; return whether it does."""
    until = time.monotonic() + seconds
    while True:
        try:
            if not is_read_only():
                return True
        except Error as error:
            if not is_unavailable(error):
                raise
        discard()
        if time.monotonic() >= until:
            return False
        time.sleep(0.25)


def is_unavailable(error: BaseException) -> bool:
    """Return whether an error of Django's means that the database cannot serve for now.

    The other errors are faults of ours. One without SQLSTATE is of a connection that was lost: a
    fault of ours on the client's side is a ProgrammingError, a DataError or the like.
    """
    if isinstance(error, OperationalError | InterfaceError):
        return True
    if not isinstance(error, DatabaseError):
        return False
    sqlstate = _sqlstate(error)
    if sqlstate is None:
        return type(error) in (DatabaseError, InternalError)
    return sqlstate == READ_ONLY


def _sqlstate(error: BaseException) -> str | None:
    found: str | None = getattr(error.__cause__, "sqlstate", None)
    return found
