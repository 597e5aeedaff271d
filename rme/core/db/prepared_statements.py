"""Statements of the hot path: prepared once, and sent together.

`execute` runs a statement now. The statements of a batch leave together: those of a `pipeline()` at
its end, those of a `transaction()` once the rows of one are needed. Each time that is one round
trip, with BEGIN and COMMIT.

All statements take this path: also inside of another transaction or savepoint, which Django opens
and ends on the same connection as ever, and while statements are counted or wrapped
(`connection.queries_log`, `connection.execute_wrapper`).
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import cast

from django.db import DEFAULT_DB_ALIAS, DataError, InterfaceError, ProgrammingError, connections
from django.db import transaction as django_transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from rme.core.db import pipeline as pipelines
from rme.core.db.availability import BoundedConnection
from rme.core.db.pipeline import Rows, Statement

Parameter = str | int | float | bool | None


class PendingRows(Statement):
    """A statement of a batch, whose rows are there now or later."""

    __slots__ = ("_batch",)

    def __init__(
        self,
        text: str,
        parameters: Sequence[str | None] = (),
        result: Rows | None = None,
        batch: "Batch | None" = None,
    ) -> None:
        super().__init__(text, parameters, result)
        self._batch = batch

    def rows(self) -> Rows:
        """Return the rows; execute the statements that wait if need be. Raises DatabaseError."""
        if self.result is None and self._batch is not None:
            self._batch.flush()
        if self.result is None:
            raise InterfaceError("its transaction has failed")
        return self.result


class _Setting(Statement):
    """A setting of the planner, which holds for the statements after it."""

    __slots__ = ()


class Batch:
    """Statements of one transaction that are executed together."""

    def __init__(self, here: BaseDatabaseWrapper, *, waits_for_end: bool = False) -> None:
        """Begin an empty batch. With `waits_for_end` no rows can be asked for before its end."""
        self._here = here
        self._waits_for_end = waits_for_end
        self._level = len(here.savepoint_ids)
        self._waiting: list[Statement] = []

    def send(
        self, text: str, parameters: Sequence[Parameter] = (), *, setting: str = ""
    ) -> PendingRows:
        """Add a statement with `%s` for its parameters.

        `setting` is a statement that is executed before it in the same round trip: a
        `set_config(…, is_local => true)`. It holds until the transaction ends.

        Raises TypeError for parameters of other types, and DatabaseError in a savepoint.
        """
        statement = PendingRows(text, [_text(value) for value in parameters], batch=self)
        if setting and setting != self._last_setting():
            self._waiting.append(_Setting(setting))
        self._waiting.append(statement)
        if self._level != len(self._here.savepoint_ids) and not self._waits_for_end:
            self.flush()  # what a savepoint undoes must not wait
        return statement

    def flush(self, *, commit: bool = False) -> None:
        """Execute the statements that wait. Raises DatabaseError."""
        if self._waits_for_end:
            raise ProgrammingError("the statements of a pipeline are executed at its end")
        if statements := self.take():
            _run(self._here, statements, commit=commit, without=self.flush_first)

    def take(self) -> list[Statement]:
        """Return the statements that wait, and leave none."""
        statements, self._waiting = self._waiting, []
        return statements

    def flush_first(self, execute: Callable[..., object], *arguments: object) -> object:
        """Keep the order where another statement of the transaction is executed (a wrapper)."""
        self.flush()
        return execute(*arguments)

    def _last_setting(self) -> str:
        settings = (each.text for each in reversed(self._waiting) if isinstance(each, _Setting))
        return next(settings, "")


@contextmanager
def transaction() -> Iterator[Batch]:
    """Open a transaction, as `atomic` does; the statements of its batch wait until the rows of one
    are needed.

    Inside of another transaction it is a savepoint, as with `atomic`.
    """
    here = connections[DEFAULT_DB_ALIAS]
    _refuse_in_pipeline(here)
    nested = here.in_atomic_block
    with django_transaction.atomic():
        batch = Batch(here)
        try:
            with here.execute_wrapper(batch.flush_first):
                yield batch
            if not here.needs_rollback:
                batch.flush(commit=not nested)
        finally:  # with the transaction committed, `atomic` has nothing left to do
            batch.take()


@contextmanager
def pipeline() -> Iterator[Batch]:
    """Execute the statements of a batch as one transaction, at the end.

    No rows can be asked for before: use `transaction()` for that. What is executed inside (to fill
    a cache) may only read, and is outside of this transaction. Inside of another transaction the
    batch is a savepoint.
    """
    here = connections[DEFAULT_DB_ALIAS]
    _refuse_in_pipeline(here)
    batch = Batch(here, waits_for_end=True)
    with here.execute_wrapper(_only_reading):
        yield batch
    if not (statements := batch.take()):
        return
    if here.in_atomic_block:
        with django_transaction.atomic():
            _run(here, statements)
    else:
        _run(here, statements)


def execute(text: str, parameters: Sequence[Parameter] = (), *, setting: str = "") -> Rows:
    """Execute a statement with `%s` for its parameters, and return its rows.

    `setting` is a statement that is executed before it, as in `Batch.send`. Outside of another
    transaction the two are one, so the setting holds for this statement only.

    Raises DatabaseError, and TypeError for parameters of other types.
    """
    statement = Statement(text, [_text(value) for value in parameters])
    _run(connections[DEFAULT_DB_ALIAS], [_Setting(setting), statement] if setting else [statement])
    assert statement.result is not None  # it was executed
    return statement.result


def _run(
    here: BaseDatabaseWrapper,
    statements: Sequence[Statement],
    *,
    commit: bool = False,
    without: Callable[..., object] | None = None,
) -> None:
    """Execute statements within Django's wrappers (the first one's outermost) but one, and log
    them.
    """
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

    wrappers = [each for each in here.execute_wrappers if each != without]
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
    statement: Statement,
    following: Callable[..., None],
    *_: object,
) -> None:
    """Pass a statement through wrappers, as `CursorWrapper` does; the innermost call goes on."""
    for wrapper in reversed(wrappers):
        following = partial(wrapper, following)
    context = {"connection": here, "cursor": None}
    following(statement.text, statement.parameters, False, context)


def _refuse_in_pipeline(here: BaseDatabaseWrapper) -> None:
    if _only_reading in here.execute_wrappers:
        raise ProgrammingError("no transaction is opened in a pipeline")


def _only_reading(execute: Callable[..., object], text: str, *arguments: object) -> object:
    """Refuse to write outside of the transaction that the open pipeline will be."""
    if text.lstrip()[:6].upper() != "SELECT":
        raise ProgrammingError("a cursor that writes belongs into transaction()")
    return execute(text, *arguments)


def _raw(here: BaseDatabaseWrapper) -> BoundedConnection:
    """Return psycopg's connection, opened if need be."""
    here.ensure_connection()
    return cast(BoundedConnection, here.connection)


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
