"""Prepared statements, executed by psycopg: alone, or as a pipeline in one round trip.

https://www.psycopg.org/psycopg3/docs/advanced/pipeline.html
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import pq
from psycopg.errors import InvalidSqlStatementName, PipelineAborted

from rme.core.db import availability
from rme.core.db.availability import BoundedConnection

Rows = list[tuple[Any, ...]]


class Statement:
    """A statement with `%s` for its parameters, its parameters in PostgreSQL's text format, and
    its rows once it was executed.
    """

    __slots__ = ("parameters", "result", "text")

    def __init__(
        self, text: str, parameters: Sequence[str | None] = (), result: Rows | None = None
    ) -> None:
        self.text = text
        self.parameters = parameters
        self.result = result


def run(raw: BoundedConnection, statements: Sequence[Statement], *, commit: bool = False) -> None:
    """Execute statements in one round trip, and store their rows in them.

    They belong to the open transaction. Without one, they are one transaction if the connection is
    in autocommit, else they begin one. With `commit` the transaction ends after them. Raises
    psycopg.Error.
    """
    idle = _is_idle(raw)
    autocommit = raw.autocommit
    if idle and not autocommit:
        raw.autocommit = True  # the BEGIN that psycopg sends otherwise is a round trip of its own
    try:
        for attempt in range(2):
            try:
                _run(raw, statements, begin=idle, commit=commit or (idle and autocommit))
                return
            except InvalidSqlStatementName:  # dropped behind psycopg's back, as by DISCARD ALL
                if attempt or not idle:
                    raise
                raw.rollback()
                raw.execute("DEALLOCATE ALL")  # psycopg then prepares all anew
    except BaseException:
        if idle and autocommit and not raw.closed:
            raw.rollback()
        raise
    finally:
        if not autocommit and _is_idle(raw):
            raw.autocommit = False


def _run(
    raw: BoundedConnection, statements: Sequence[Statement], *, begin: bool, commit: bool
) -> None:
    # Raw cursors take texts as they are: psycopg would parse the longer ones at each execution.
    cursors = [psycopg.RawCursor(raw) for _ in statements]
    if len(statements) == 1 and begin == commit:
        (statement,) = statements
        _execute(cursors[0], statement)
    else:
        try:
            with raw.pipeline():
                _send(raw, cursors, statements, begin=begin, commit=commit)
        except PipelineAborted as error:  # of a later statement than the one that has failed
            raise error.__context__ or error from None
        availability.reach.found()
    for statement, cursor in zip(statements, cursors, strict=True):
        statement.result = [] if cursor.rownumber is None else cursor.fetchall()


def _send(
    raw: BoundedConnection,
    cursors: Sequence[psycopg.RawCursor[Any]],
    statements: Sequence[Statement],
    *,
    begin: bool,
    commit: bool,
) -> None:
    """Send statements; BEGIN and COMMIT as statements, because psycopg's own are round trips.

    Without them psycopg cannot read an error of the commit, as by a deferred constraint.
    """
    if begin:
        _execute(psycopg.RawCursor(raw), Statement("BEGIN"))
    for cursor, statement in zip(cursors, statements, strict=True):
        _execute(cursor, statement)
    if commit:
        _execute(psycopg.RawCursor(raw), Statement("COMMIT"))


def _execute(cursor: psycopg.RawCursor[Any], statement: Statement) -> None:
    query = _numbered(statement.text, len(statement.parameters))
    cursor.execute(query, statement.parameters, prepare=True)


@lru_cache(maxsize=1024)
def _numbered(text: str, count: int) -> bytes:
    """Return a statement with `$1`, `$2`, … in place of each `%s`. Raises ProgrammingError if there
    are not `count` of them.
    """
    first, *parts = text.split("%s")
    if len(parts) != count:
        raise psycopg.ProgrammingError(f"{count} parameters for {len(parts)} placeholders")
    numbered = first + "".join(f"${place}{part}" for place, part in enumerate(parts, 1))
    return numbered.replace("%%", "%").encode()


def _is_idle(raw: BoundedConnection) -> bool:
    return raw.pgconn.transaction_status == pq.TransactionStatus.IDLE
