"""Statements of every window of sends and every accept: prepared once, and straight to libpq.

Between Django's cursor and libpq a statement passes some sixty functions: 57 µs of the processor's
time, and 330 where the process has slept and its caches are cold. Straight it is 6, and 80.

This way goes what is executed while no transaction is open, and inside of `transaction()`. All else
(in another transaction, with a savepoint, with other parameters, and while somebody counts the
statements) goes by Django's cursor, with the same result: psycopg lets go of everything that was
prepared when it rolls back, and only before a transaction has begun can that be made good.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from django.db import connection
from django.db import transaction as django_transaction
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.errors import InvalidSqlStatementName, error_from_result

Rows = list[tuple[Any, ...]]
_MOST = 200
"""So many statements are kept prepared by a connection; then all are made anew."""


class _Kept:
    """What one connection has prepared."""

    def __init__(self) -> None:
        self.names: dict[str, bytes] = {}
        self.numbers = count(1)
        self.inside = False
        """A transaction of ours is open."""
        self.untouched = False
        """And nothing has been done in it yet."""


_kept: WeakKeyDictionary["psycopg.Connection[Any]", _Kept] = WeakKeyDictionary()


@contextmanager
def transaction() -> Iterator[None]:
    """Open a transaction, as `atomic` does, in which statements go straight. Use no savepoints."""
    with django_transaction.atomic():
        raw = _raw()
        if raw is None or raw.info.transaction_status is not pq.TransactionStatus.IDLE:
            yield
            return
        kept = _of(raw)
        with connection.wrap_database_errors:
            _begin(raw)
        kept.inside = kept.untouched = True
        try:
            yield
        finally:
            kept.inside = False
        if raw.pgconn.transaction_status == pq.TransactionStatus.INTRANS:
            with connection.wrap_database_errors:  # `atomic` finds that there is nothing left to do
                _checked(raw, raw.pgconn.exec_(b"COMMIT"))


def execute(text: str, parameters: Sequence[Any] = ()) -> Rows:
    """Execute a statement with `%s` for its parameters, and give its rows."""
    raw = _raw()
    written = _written(parameters)
    if raw is not None and written is not None and _is_free(raw):
        with connection.wrap_database_errors:
            return _straight(raw, text, written)
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)
        return cursor.fetchall() if cursor.description else []


def _raw() -> "psycopg.Connection[Any] | None":
    """Give the connection below Django's; None while somebody watches its statements."""
    if connection.queries_logged or connection.execute_wrappers:
        return None
    connection.ensure_connection()
    return connection.connection  # type: ignore[no-any-return]


def _of(raw: "psycopg.Connection[Any]") -> _Kept:
    kept = _kept.get(raw)
    if kept is None:
        kept = _kept[raw] = _Kept()
    return kept


def _is_free(raw: "psycopg.Connection[Any]") -> bool:
    """Say whether a statement may go straight now."""
    status = raw.pgconn.transaction_status
    if status == pq.TransactionStatus.IDLE:
        return raw.autocommit
    ours = _of(raw).inside and not connection.savepoint_ids
    return ours and status == pq.TransactionStatus.INTRANS


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


def _begin(raw: "psycopg.Connection[Any]") -> None:
    _checked(raw, raw.pgconn.exec_(b"BEGIN"))


def _straight(raw: "psycopg.Connection[Any]", text: str, parameters: Sequence[bytes]) -> Rows:
    kept = _of(raw)
    first, kept.untouched = kept.untouched, False
    if first and text not in kept.names:
        _forget(raw, kept)  # what else was prepared may be gone, and could not be made good later
    try:
        return _run(raw, kept, text, parameters)
    except InvalidSqlStatementName:
        if kept.inside and not first:
            raise
    kept.names.clear()
    if kept.inside:
        _checked(raw, raw.pgconn.exec_(b"ROLLBACK"))
        _begin(raw)
    return _run(raw, kept, text, parameters)


def _run(
    raw: "psycopg.Connection[Any]", kept: _Kept, text: str, parameters: Sequence[bytes]
) -> Rows:
    name = kept.names.get(text) or _prepare(raw, kept, text)
    result = _checked(raw, raw.pgconn.exec_prepared(name, parameters))
    if not result.nfields:
        return []
    loader = Transformer(raw)
    loader.set_pgresult(result)
    return loader.load_rows(0, result.ntuples, tuple)


def _forget(raw: "psycopg.Connection[Any]", kept: _Kept) -> None:
    """Let go of what was prepared. One that is gone already is no error to PostgreSQL."""
    for name in kept.names.values():  # not all there are: psycopg has statements of its own
        _checked(raw, raw.pgconn.close_prepared(name))
    kept.names.clear()


def _prepare(raw: "psycopg.Connection[Any]", kept: _Kept, text: str) -> bytes:
    if len(kept.names) >= _MOST:
        _forget(raw, kept)
    name = b"rme_%d" % next(kept.numbers)
    first, *others = text.split("%s")
    numbered = first + "".join(f"${place}{part}" for place, part in enumerate(others, 1))
    _checked(raw, raw.pgconn.prepare(name, numbered.replace("%%", "%").encode()))
    kept.names[text] = name
    return name


def _checked(raw: "psycopg.Connection[Any]", result: Any) -> Any:
    if result.status in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK):
        return result
    if raw.pgconn.status != pq.ConnStatus.OK:
        raise psycopg.OperationalError(raw.pgconn.get_error_message())
    raise error_from_result(result)
