"""Statements of every window of sends and every accept: prepared once, and straight to libpq.

Between Django's cursor and libpq a statement passes some sixty functions: 57 µs of the processor's
time, and 330 where the process has slept and its caches are cold. Straight it is 6, and 80, and
most of those is the sleep. So the statements of a `transaction()` leave together, once an answer is
wanted, and those of `together()` at its end: a pipeline, which is a transaction by itself
(https://www.postgresql.org/docs/current/libpq-pipeline-mode.html). It does without BEGIN, COMMIT
and what Django does for them, which costs as much as two statements.

This way goes what is executed while no transaction is open, and inside of these two. All else
(in another transaction, with a savepoint, with other parameters, and while somebody counts the
statements) goes by Django's cursor, with the same result: psycopg lets go of everything that was
prepared when it rolls back, and only before a transaction has begun can that be made good.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from django.db import DEFAULT_DB_ALIAS, InterfaceError, ProgrammingError, connections
from django.db import transaction as django_transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import pq

from rme.core.db.pipeline import Raw, Rows, Statement, Straight


class Answer(Statement):
    """What a statement gives, now or later."""

    __slots__ = ()

    def rows(self) -> Rows:
        """Give the rows. What waits to be executed is executed now; raises DatabaseError."""
        if self.found is None:
            flush()
        if self.found is None:
            raise InterfaceError("its transaction has failed")
        return self.found


class _Kept(Straight):
    """A connection's way, and the transaction of ours that is open on it."""

    def __init__(self, raw: Raw) -> None:
        super().__init__(raw)
        self.inside = False
        """A transaction of ours is open."""
        self.begun = False
        """And PostgreSQL knows of it."""
        self.waiting: list[Answer] = []
        """What is still to be executed in it."""


class _Whole(threading.local):
    """What leaves together once all is said, in this thread; None: nothing does."""

    statements: list[Answer] | None = None


_kept: WeakKeyDictionary[Raw, _Kept] = WeakKeyDictionary()
_whole = _Whole()


@contextmanager
def transaction() -> Iterator[None]:
    """Open a transaction, as `atomic` does, in which statements go straight, and those together
    that nobody waits for. Use no savepoints.
    """
    _refuse_inside_of_whole()
    with django_transaction.atomic():
        here = connections[DEFAULT_DB_ALIAS]
        raw = _raw(here)
        if raw is None or raw.pgconn.transaction_status != pq.TransactionStatus.IDLE:
            yield
            return
        kept = _of(raw)
        kept.inside, kept.begun = True, False
        try:
            with here.execute_wrapper(_flush_first):
                yield
            if kept.waiting or raw.pgconn.transaction_status == pq.TransactionStatus.INTRANS:
                with here.wrap_database_errors:
                    _flush(raw, kept, commit=True)
        finally:  # and `atomic` finds that there is nothing left to do
            kept.inside = False
            kept.waiting.clear()


@contextmanager
def together() -> Iterator[None]:
    """Have what is sent inside executed as one transaction, at the end.

    Inside nobody may ask for an answer: use `transaction()` for that. What is read by a cursor
    meanwhile (a cache that is filled) is read at once, and no part of it.
    """
    _refuse_inside_of_whole()
    here = connections[DEFAULT_DB_ALIAS]
    raw = _raw(here)
    if raw is None or here.in_atomic_block or not _is_free(here, raw):
        with django_transaction.atomic():
            yield
        return
    statements = _whole.statements = []
    try:
        with here.execute_wrapper(_only_reading):
            yield
    finally:
        _whole.statements = None
    if statements:
        with here.wrap_database_errors:
            _of(raw).together(raw, statements)


def execute(text: str, parameters: Sequence[Any] = ()) -> Rows:
    """Execute a statement with `%s` for its parameters, and give its rows."""
    return send(text, parameters).rows()


def send(text: str, parameters: Sequence[Any] = ()) -> Answer:
    """Have a statement executed, in a `transaction()` not before something asks for an answer."""
    written = _written(parameters)
    if (together := _whole.statements) is not None:
        if written is None:
            raise ProgrammingError("what only a cursor takes belongs into transaction()")
        answer = Answer(text, written)
        together.append(answer)
        return answer
    here = connections[DEFAULT_DB_ALIAS]
    raw = _raw(here)
    if raw is not None and written is not None and _is_free(here, raw):
        kept = _of(raw)
        answer = Answer(text, written)
        if kept.inside:
            kept.waiting.append(answer)
        else:
            with here.wrap_database_errors:
                kept.execute(raw, answer)
        return answer
    with here.cursor() as cursor:
        cursor.execute(text, parameters)
        return Answer(text, found=cursor.fetchall() if cursor.description else [])


def flush() -> None:
    """Have executed what waits, and hear what came of it. Raises DatabaseError."""
    _refuse_inside_of_whole()
    here = connections[DEFAULT_DB_ALIAS]
    raw = _raw(here)
    if raw is not None and (kept := _of(raw)).inside:
        with here.wrap_database_errors:
            _flush(raw, kept)


def _refuse_inside_of_whole() -> None:
    if _whole.statements is not None:
        raise ProgrammingError("nothing is executed before all is")


def _flush_first(execute: Callable[..., Any], *arguments: Any) -> Any:
    """Keep the order, where a statement in the same transaction goes by a cursor."""
    flush()
    return execute(*arguments)


def _only_reading(execute: Callable[..., Any], text: str, *arguments: Any) -> Any:
    """Let nothing be written beside a transaction that has not begun."""
    if text.lstrip()[:6].upper() != "SELECT":
        raise ProgrammingError("a cursor that writes belongs into transaction()")
    return execute(text, *arguments)


def _raw(here: BaseDatabaseWrapper) -> Raw | None:
    """Give the connection below Django's; None while somebody watches its statements."""
    watching = here.execute_wrappers
    if here.queries_logged or (watching and watching not in ([_flush_first], [_only_reading])):
        return None
    here.ensure_connection()
    return here.connection  # type: ignore[no-any-return]


def _of(raw: Raw) -> _Kept:
    kept = _kept.get(raw)
    if kept is None:
        kept = _kept[raw] = _Kept(raw)
    return kept


def _is_free(here: BaseDatabaseWrapper, raw: Raw) -> bool:
    """Say whether a statement may go straight now."""
    kept = _of(raw)
    if kept.inside:
        wanted = pq.TransactionStatus.INTRANS if kept.begun else pq.TransactionStatus.IDLE
        return raw.pgconn.transaction_status == wanted and not here.savepoint_ids
    return raw.autocommit and raw.pgconn.transaction_status == pq.TransactionStatus.IDLE


def _written(parameters: Sequence[Any]) -> list[bytes] | None:
    """Write parameters as PostgreSQL reads them; None if there are others than these."""
    written: list[bytes] = []
    for value in parameters:
        if isinstance(value, str):
            if "\0" in value:
                return None
            written.append(value.encode())
        elif type(value) in (int, float):
            written.append(repr(value).encode())
        else:
            return None
    return written


def _flush(raw: Raw, kept: _Kept, *, commit: bool = False) -> None:
    """Execute what waits, in one go."""
    answers, kept.waiting = kept.waiting, []
    if kept.begun:
        kept.go_on(raw, answers, commit=commit)
    else:
        kept.begin(raw, answers, commit=commit)
        kept.begun = True
