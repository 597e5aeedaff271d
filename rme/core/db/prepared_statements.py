"""Statements of the hot path: prepared once, and sent together.

The statements of a `pipeline()` leave together at its end, those of a `transaction()` once the rows
of one are needed: each time in one round trip, with BEGIN and COMMIT.

All statements take this path: also inside of another transaction or savepoint, which Django opens
and ends on the same connection as ever, and while statements are counted or wrapped
(`connection.queries_log`, `connection.execute_wrapper`).
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import cast
from weakref import WeakKeyDictionary

from django.db import DEFAULT_DB_ALIAS, DataError, InterfaceError, ProgrammingError, connections
from django.db import transaction as django_transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from rme.core.db import pipeline as pipelines
from rme.core.db.availability import BoundedConnection
from rme.core.db.pipeline import Rows, Statement

Parameter = str | int | float | bool | None


class PendingRows(Statement):
    """A statement whose rows are there now or later."""

    __slots__ = ()

    def rows(self) -> Rows:
        """Return the rows; execute the statements that wait if need be. Raises DatabaseError."""
        if self.result is None:
            flush()
        if self.result is None:
            raise InterfaceError("its transaction has failed")
        return self.result


class _Setting(PendingRows):
    """A setting of the planner, which holds for the statements after it."""

    __slots__ = ()


class _Transaction:
    """The `transaction()` that is open on a connection, if one is."""

    def __init__(self) -> None:
        self.level: int | None = None
        """The number of savepoints around the open `transaction()`; None: there is none."""
        self.waiting: list[PendingRows] = []
        """The statements of it that were not executed yet."""


class _Pipeline(threading.local):
    """The statements of this thread's open `pipeline()`; None: there is none."""

    statements: list[PendingRows] | None = None


_transactions: WeakKeyDictionary[BoundedConnection, _Transaction] = WeakKeyDictionary()
_pipeline = _Pipeline()


@contextmanager
def transaction() -> Iterator[None]:
    """Open a transaction, as `atomic` does, whose statements wait until the rows of one are needed.

    Inside of another transaction it is a savepoint, as with `atomic`.
    """
    _refuse_in_pipeline()
    here = connections[DEFAULT_DB_ALIAS]
    nested = here.in_atomic_block
    with django_transaction.atomic():
        opened = _of(_raw(here))
        before, opened.level = opened.level, len(here.savepoint_ids)
        try:
            with here.execute_wrapper(_flush_first):
                yield
            if not here.needs_rollback:
                _flush(here, commit=not nested)
        finally:  # with the transaction committed, `atomic` has nothing left to do
            opened.level = before
            opened.waiting.clear()


@contextmanager
def pipeline() -> Iterator[None]:
    """Execute the statements that are sent inside as one transaction, at the end.

    Inside, no rows can be asked for: use `transaction()` for that. A statement by a cursor (to fill
    a cache) may only read; it is executed at once, outside of this transaction. Inside of another
    transaction the statements are a savepoint.
    """
    _refuse_in_pipeline()
    here = connections[DEFAULT_DB_ALIAS]
    statements = _pipeline.statements = []
    try:
        with here.execute_wrapper(_only_reading):
            yield
    finally:
        _pipeline.statements = None
    if not statements:
        return
    if here.in_atomic_block:
        with django_transaction.atomic():
            _run(here, statements)
    else:
        _run(here, statements)


def execute(text: str, parameters: Sequence[Parameter] = (), *, setting: str = "") -> Rows:
    """Execute a statement with `%s` for its parameters, and return its rows; see `send`."""
    return send(text, parameters, setting=setting).rows()


def send(text: str, parameters: Sequence[Parameter] = (), *, setting: str = "") -> PendingRows:
    """Execute a statement; in a `transaction()` not before the rows of one are needed, and in a
    `pipeline()` at its end.

    `setting` is a statement that is executed before it in the same round trip and transaction: a
    `set_config(…, is_local => true)`. Alone, the two are a transaction, so the setting holds for
    this statement only; else it holds until the transaction ends.

    Raises DatabaseError, and TypeError for parameters of other types.
    """
    statement = PendingRows(text, [_text(value) for value in parameters])
    statements = [_Setting(setting), statement] if setting else [statement]
    if _pipeline.statements is not None:
        _append(_pipeline.statements, statements)
        return statement
    here = connections[DEFAULT_DB_ALIAS]
    opened = _of(_raw(here))
    if opened.level is None:
        _run(here, statements)
    else:
        _append(opened.waiting, statements)
        if opened.level != len(here.savepoint_ids):  # what a savepoint undoes must not wait
            _flush(here)
    return statement


def _append(waiting: list[PendingRows], statements: Sequence[PendingRows]) -> None:
    """Add a statement after its setting, unless that is the last setting of those that wait."""
    *setting, statement = statements
    last = next((each.text for each in reversed(waiting) if isinstance(each, _Setting)), "")
    waiting += [each for each in setting if each.text != last]
    waiting.append(statement)


def flush() -> None:
    """Execute the statements of the open `transaction()` that wait. Raises DatabaseError."""
    _refuse_in_pipeline()
    _flush(connections[DEFAULT_DB_ALIAS])


def _flush(here: BaseDatabaseWrapper, *, commit: bool = False) -> None:
    opened = _of(_raw(here))
    statements, opened.waiting = opened.waiting, []
    if statements:
        _run(here, statements, commit=commit)


def _run(
    here: BaseDatabaseWrapper, statements: Sequence[PendingRows], *, commit: bool = False
) -> None:
    """Execute statements within Django's wrappers (the first one's outermost), and log them."""
    here.validate_no_broken_transaction()

    def run(*_: object) -> None:
        raw = _raw(here)
        started = time.monotonic()
        try:
            with here.wrap_database_errors:
                pipelines.run(raw, statements, commit=commit)
        finally:
            if here.queries_logged:
                took = f"{time.monotonic() - started:.3f}"
                here.queries_log.extend({"sql": each.text, "time": took} for each in statements)

    wrappers = [each for each in here.execute_wrappers if each is not _flush_first]
    if not wrappers:
        run()
        return
    step: Callable[..., None] = run
    for statement in reversed(statements):
        step = partial(_wrapped, here, wrappers, statement, step)
    step()


def _wrapped(
    here: BaseDatabaseWrapper,
    wrappers: Sequence[Callable[..., object]],
    statement: PendingRows,
    following: Callable[..., None],
    *_: object,
) -> None:
    """Pass a statement through wrappers, as `CursorWrapper` does; the innermost call goes on."""
    for wrapper in reversed(wrappers):
        following = partial(wrapper, following)
    context = {"connection": here, "cursor": None}
    following(statement.text, statement.parameters, False, context)


def _refuse_in_pipeline() -> None:
    if _pipeline.statements is not None:
        raise ProgrammingError("the statements of a pipeline are executed at its end")


def _flush_first(execute: Callable[..., object], *arguments: object) -> object:
    """Keep the order where a statement in the same transaction is executed by a cursor."""
    flush()
    return execute(*arguments)


def _only_reading(execute: Callable[..., object], text: str, *arguments: object) -> object:
    """Refuse to write outside of the transaction that the open pipeline will be."""
    if text.lstrip()[:6].upper() != "SELECT":
        raise ProgrammingError("a cursor that writes belongs into transaction()")
    return execute(text, *arguments)


def _raw(here: BaseDatabaseWrapper) -> BoundedConnection:
    """Return psycopg's connection, opened if need be."""
    here.ensure_connection()
    return cast(BoundedConnection, here.connection)


def _of(raw: BoundedConnection) -> _Transaction:
    opened = _transactions.get(raw)
    if opened is None:
        opened = _transactions[raw] = _Transaction()
    return opened


def _text(value: Parameter) -> str | None:
    """Return a parameter in PostgreSQL's text format."""
    if isinstance(value, str):
        if "\0" in value:
            raise DataError("PostgreSQL text cannot contain NUL (0x00) bytes")
        return str.__str__(value)  # psycopg would pass a member of an Enum by its name
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise TypeError(f"a parameter of the type {type(value).__name__}")
