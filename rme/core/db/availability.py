"""How long this process waits for PostgreSQL, and which errors mean that PostgreSQL is away.

A server that is frozen keeps its sockets open, so neither libpq nor TCP notices. So each statement
has a time limit on the client's side, which `BoundedConnection` keeps. A statement that exceeds it
closes the connection. From then on one caller at a time tries whether PostgreSQL is back, and all
others fail at once, so that the threads of a web process stay free for work without a database.

A process sets its limit once (`limit`): web and workers do, management commands do not.
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
from psycopg_pool import PoolTimeout

from rme.core.absence import Absence
from rme.core.db.postgresql import direct
from rme.core.telemetry.meters import Counter

log = structlog.get_logger(__name__)

RETRY_SECONDS = 1.0
"""The pause between two tries whether PostgreSQL is back."""
CHECK_SECONDS = 1.0
"""How long a connection that may be lost has to answer."""
PREPARED_MAX = 300
"""The number of statements that a connection keeps prepared. The hot path has up to 200."""
SERVER_SHARE = 0.9
"""PostgreSQL itself cancels a statement after this share of the limit, and keeps the connection."""
READ_ONLY = "25006"

Raw = psycopg.Connection[Any]


# --- bounds ---------------------------------------------------------------------------------------


class _ProcessLimit:
    """The time limit of statements of this process, in seconds; None: there is none."""

    limit: float | None = None


class _ThreadLimit(threading.local):
    """The exceptions to it in this thread."""

    until: float | None = None
    unlimited = False


_process, _thread = _ProcessLimit(), _ThreadLimit()


def limit(seconds: float | None) -> None:
    """Set the time limit of statements of this process, before its first connection is opened."""
    _process.limit = seconds


def server_options() -> str:
    """Return libpq's `options` for the time limit."""
    if _process.limit is None:
        return ""
    milliseconds = int(_process.limit * SERVER_SHARE * 1000)
    # A backend whose client has given up ends within seconds.
    return f" -c statement_timeout={milliseconds} -c client_connection_check_interval=2000"


def allowed() -> float | None:
    """Return the seconds that the next statement may take; None without a limit."""
    if _thread.unlimited:
        return None
    if _thread.until is None:
        return _process.limit
    remaining = max(_thread.until - time.monotonic(), 0.0)
    return remaining if _process.limit is None else min(remaining, _process.limit)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Limit the time of all statements of the block together, in this thread."""
    outer = _thread.until
    until = time.monotonic() + seconds
    _thread.until = until if outer is None else min(outer, until)
    try:
        yield
    finally:
        _thread.until = outer


@contextmanager
def as_usual() -> Iterator[None]:
    """Suspend `within`: the block must run even if that time is over."""
    outer, _thread.until = _thread.until, None
    try:
        yield
    finally:
        _thread.until = outer


@contextmanager
def unlimited() -> Iterator[None]:
    """Suspend the limit in this thread for slow statements, such as dropping a partition."""
    if _process.limit is None:
        yield
        return
    with direct.session():
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
    """A psycopg connection whose statements end in time, and whose commits are on the standby."""

    is_unconfirmed = False
    """Whether a commit on it did not wait for the synchronous standby, as by pg_cancel_backend."""

    @classmethod
    def connect(cls, *args: Any, **kwargs: Any) -> Any:
        """Connect, and note whether PostgreSQL could be reached."""
        try:
            raw = super().connect(*args, **kwargs)
        except psycopg.OperationalError as error:
            if error.sqlstate is None or error.sqlstate.startswith("57P"):
                reach.lost(error)
            if hint := direct.hint(str(error)):
                log.warning("database.pooler", hint=hint)
            raise
        reach.found()
        raw.prepared_max = PREPARED_MAX
        raw.add_notice_handler(raw.take_notice)
        return raw

    def take_notice(self, notice: psycopg.errors.Diagnostic) -> None:
        """Note that the server stopped waiting for its synchronous standby: it says so by a warning
        and reports the commit as done.
        """
        if notice.source_function == "SyncRepWaitForLSN":
            self.is_unconfirmed = True

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Run an exchange with the server to its end, or to the end of its time."""
        bound = allowed()
        if bound is not None:
            timeout = bound if timeout is None else min(bound, timeout)
        try:
            answer = super().wait(gen, interval, timeout)
        except BaseException as error:
            # An error with SQLSTATE is an answer: in a pipeline others follow it.
            is_answer = getattr(error, "sqlstate", None) is not None
            if not is_answer and self.pgconn.transaction_status == pq.TransactionStatus.ACTIVE:
                self.close()  # a late result would be taken for that of a later statement
                if isinstance(error, psycopg.OperationalError):
                    reach.lost(error)
            raise
        if self.is_unconfirmed:
            self.close()
            raise psycopg.OperationalError("it was committed without the synchronous standby")
        if not self.pgconn.pipeline_status:  # in a pipeline it has only been sent
            reach.found()
        return answer


# --- whether PostgreSQL answers -------------------------------------------------------------------


class Reach:
    """Whether PostgreSQL answers this process. After a failure one caller at a time tries it."""

    def __init__(self) -> None:
        self._absence = Absence(RETRY_SECONDS)

    def require(self) -> None:
        """Raise psycopg.OperationalError if PostgreSQL did not answer a moment ago."""
        if not self._absence.may_try(longest=_process.limit or 0.0):
            raise psycopg.OperationalError("PostgreSQL did not answer a moment ago")

    def lost(self, error: psycopg.Error) -> None:
        """Note that there was no answer. Without a limit (in commands) nothing is noted."""
        if _process.limit is not None and self._absence.note_failure():
            log.warning("database.lost", error=type(error).__name__, sqlstate=error.sqlstate)

    def found(self) -> None:
        """Note that there was an answer."""
        if self._absence.note_answer():
            log.info("database.back")


reach = Reach()


def is_alive(raw: Raw) -> bool:
    """Return whether an idle connection is still open; nothing is sent in the usual case.

    A server that ends a connection closes its socket, mostly after a message: either makes it
    readable. The message may be a harmless notice; then an empty statement decides.
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
    """Close this thread's connections that are lost: the next statement opens another."""
    for wrapper in connections.all(initialized_only=True):
        if wrapper.connection is None or wrapper.in_atomic_block:
            continue
        if not is_alive(wrapper.connection):
            wrapper.close()


def give_back() -> None:
    """Return this thread's connections to the pool, before it waits for another thread."""
    for wrapper in connections.all(initialized_only=True):
        if wrapper.connection is not None and not wrapper.in_atomic_block:
            wrapper.close()


def discard(error: BaseException | None = None) -> None:
    """Close this thread's connections for good, because a new one may reach the new primary.

    With an error, only if the error means that the server is read-only.
    """
    if error is not None and _sqlstate(error) != READ_ONLY:
        return
    for wrapper in connections.all(initialized_only=True):
        if wrapper.connection is not None and not wrapper.in_atomic_block:
            wrapper.connection.close()
            wrapper.close()


def is_read_only() -> bool:
    """Return whether the server is read-only: a standby, or a primary during a switch-over."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('transaction_read_only')")
        return bool(cursor.fetchone()[0] == "on")


def wait_until_writable(seconds: float) -> bool:
    """Wait until PostgreSQL accepts writes, up to `seconds`; return whether it does."""
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
    """Return whether a Django database error means that the database is away for now.

    Other errors are bugs. An error without SQLSTATE comes from a lost connection: a bug on the
    client's side raises ProgrammingError, DataError or the like.
    """
    if isinstance(error, OperationalError | InterfaceError):
        return True
    if not isinstance(error, DatabaseError):
        return False
    sqlstate = _sqlstate(error)
    if sqlstate is None:
        return type(error) in (DatabaseError, InternalError)
    return sqlstate == READ_ONLY


FAILURES = Counter(
    "rme_database_failures_total",
    "Statements that failed since the database was away.",
    ["kind"],
)
_KINDS = {
    "25006": "read_only",
    "53100": "disk_full",
    "53300": "too_many_connections",
    "55P03": "lock",
    "57014": "time_out",
}
"""What /metrics calls the errors of some SQLSTATEs."""
FAILURE_KINDS = (*_KINDS.values(), "pool", "connection", "other")


def count_failure(error: BaseException) -> None:
    """Count an error of the database by its kind, for /metrics."""
    if isinstance(error.__cause__, PoolTimeout):
        kind = "pool"
    elif (sqlstate := _sqlstate(error)) is None:
        kind = "connection"
    else:
        kind = _KINDS.get(sqlstate, "other")
    FAILURES.add(kind)


def _sqlstate(error: BaseException) -> str | None:
    state: str | None = getattr(error.__cause__, "sqlstate", None)
    return state
