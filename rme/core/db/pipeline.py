"""Straight to libpq: the prepared statements of one connection, alone or as a pipeline.

https://www.postgresql.org/docs/current/libpq-pipeline-mode.html
"""

import select
from collections.abc import Sequence
from itertools import count
from time import monotonic
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.errors import InvalidSqlStatementName, error_from_result

from rme.core.db import availability

Raw = psycopg.Connection[Any]
Rows = list[tuple[Any, ...]]
MOST = 200
"""So many statements are kept prepared by a connection; then all are made anew."""
_FINE = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)


class Statement:
    """A statement with `%s` for its parameters, these as PostgreSQL reads them, and its rows."""

    __slots__ = ("found", "parameters", "text")

    def __init__(
        self, text: str, parameters: Sequence[bytes] = (), found: Rows | None = None
    ) -> None:
        self.text = text
        self.parameters = parameters
        self.found = found


class Straight:
    """What one connection has prepared. It is given with each call: who keeps this by it must not
    keep it alive.

    All that is prepared goes at once (psycopg lets go of it when it rolls back), so that one which
    is there shows that all are.
    """

    def __init__(self, raw: Raw) -> None:
        self.names: dict[str, bytes] = {}
        self._numbers = count(1)
        self._loader = Transformer(raw.adapters)

    def execute(self, raw: Raw, statement: Statement) -> None:
        """Execute a statement outside of any transaction. Raises psycopg.Error."""
        try:
            self._execute(raw, statement)
        except InvalidSqlStatementName:
            self.names.clear()
            self._execute(raw, statement)

    def begin(self, raw: Raw, statements: Sequence[Statement], *, commit: bool) -> None:
        """Open a transaction and execute its first statements in one go, with `commit` all of it.

        Raises psycopg.Error.
        """
        try:
            self._pipe(raw, statements, begin=True, commit=commit)
        except InvalidSqlStatementName:  # later nothing can be gone: nothing rolls back meanwhile
            self.names.clear()
            raw.pgconn.send_query(b"ROLLBACK")
            checked(raw, conclude(raw))
            self._pipe(raw, statements, begin=True, commit=commit)

    def go_on(self, raw: Raw, statements: Sequence[Statement], *, commit: bool) -> None:
        """Execute more statements of a transaction in one go. Raises psycopg.Error."""
        self._pipe(raw, statements, commit=commit)

    def together(self, raw: Raw, statements: Sequence[Statement]) -> None:
        """Execute statements as a transaction: a pipeline is one. Raises psycopg.Error."""
        try:
            self._pipe(raw, statements)
        except InvalidSqlStatementName:  # then nothing was done
            self.names.clear()
            self._pipe(raw, statements)

    def _execute(self, raw: Raw, statement: Statement) -> None:
        (name,) = self._names_of(raw, [statement.text])
        raw.pgconn.send_query_prepared(name, statement.parameters)
        statement.found = self._rows(checked(raw, conclude(raw)))

    def _pipe(
        self,
        raw: Raw,
        statements: Sequence[Statement],
        *,
        begin: bool = False,
        commit: bool = False,
    ) -> None:
        names = self._names_of(raw, [statement.text for statement in statements])
        pgconn = raw.pgconn
        try:
            pgconn.enter_pipeline_mode()
            if begin:
                pgconn.send_query_params(b"BEGIN", None)
            for name, statement in zip(names, statements, strict=True):
                pgconn.send_query_prepared(name, statement.parameters)
            if commit:
                pgconn.send_query_params(b"COMMIT", None)
            pgconn.pipeline_sync()
            results = hear(pgconn)
            pgconn.exit_pipeline_mode()
        except BaseException:
            raw.close()  # in the midst of a conversation, of which nobody knows the rest
            raise
        for result in results:
            checked(raw, result)
        for statement, result in zip(statements, results[begin:], strict=False):
            statement.found = self._rows(result)

    def _rows(self, result: Any) -> Rows:
        if not result.nfields:
            return []
        self._loader.set_pgresult(result)
        rows = self._loader.load_rows(0, result.ntuples, tuple)
        self._loader.set_pgresult(None)
        return rows

    def _names_of(self, raw: Raw, texts: Sequence[str]) -> list[bytes]:
        """Give the names by which statements are prepared, and prepare those that are not yet."""
        fresh = [text for text in texts if text not in self.names]
        if fresh and self._are_gone(raw):
            self.names.clear()
            fresh = list(texts)
        if len(self.names) + len(fresh) > MOST:
            self._let_go(raw)
            fresh = list(texts)
        for text in dict.fromkeys(fresh):
            self._prepare(raw, text)
        return [self.names[text] for text in texts]

    def _prepare(self, raw: Raw, text: str) -> None:
        name = b"rme_%d" % next(self._numbers)
        first, *others = text.split("%s")
        numbered = first + "".join(f"${place}{part}" for place, part in enumerate(others, 1))
        raw.pgconn.send_prepare(name, numbered.replace("%%", "%").encode())
        checked(raw, conclude(raw))
        self.names[text] = name

    def _are_gone(self, raw: Raw) -> bool:
        """Ask for one, before others join them. In a transaction the first statements have shown;
        there the question would end it.
        """
        if not self.names or raw.pgconn.transaction_status != pq.TransactionStatus.IDLE:
            return False
        one = next(iter(self.names.values()))
        raw.pgconn.send_describe_prepared(one)
        return bool(conclude(raw).status not in _FINE)

    def _let_go(self, raw: Raw) -> None:
        """Let go of what was prepared. One that is gone already is no error to PostgreSQL."""
        for name in self.names.values():  # not all there are: psycopg has statements of its own
            raw.pgconn.send_close_prepared(name)
            checked(raw, conclude(raw))
        self.names.clear()


def hear(pgconn: pq.abc.PGconn) -> list[Any]:
    """Wait for the answers to all that a pipeline sent. Raises psycopg.OperationalError."""
    waiting = _Waiting(pgconn)
    results: list[Any] = []
    while True:
        result = waiting.next()
        if result is None:
            continue  # the end of one statement's answers
        if result.status == pq.ExecStatus.PIPELINE_SYNC:
            availability.reach.found()
            return results
        results.append(result)
        if pgconn.status != pq.ConnStatus.OK:
            raise psycopg.OperationalError(pgconn.get_error_message())


def conclude(raw: Raw) -> Any:
    """Wait for the answer to the one statement that was sent. Raises psycopg.OperationalError."""
    try:
        waiting = _Waiting(raw.pgconn)
        result = last = waiting.next()
        while last is not None:
            last = waiting.next()
        if result is None:
            raise psycopg.OperationalError(raw.pgconn.get_error_message())
        availability.reach.found()
        return result
    except BaseException:
        raw.close()  # in the midst of a conversation, of which nobody knows the rest
        raise


class _Waiting:
    """A conversation with the server, up to the end of the time that it may take."""

    def __init__(self, pgconn: pq.abc.PGconn) -> None:
        self._pgconn = pgconn
        allowed = availability.allowed()
        self._until = None if allowed is None else monotonic() + allowed
        self._poll = select.poll()
        self._poll.register(pgconn.socket, select.POLLIN | select.POLLOUT)
        while pgconn.flush():
            self._wait()
            pgconn.consume_input()
        self._poll.modify(pgconn.socket, select.POLLIN)

    def next(self) -> Any:
        """Wait for the next answer; None is the end of a statement's."""
        while self._pgconn.is_busy():
            self._wait()
            self._pgconn.consume_input()
        return self._pgconn.get_result()

    def _wait(self) -> None:
        if self._until is None:
            self._poll.poll()
        elif not self._poll.poll(max(self._until - monotonic(), 0.0) * 1000):
            error = psycopg.OperationalError("PostgreSQL did not answer in time")
            availability.reach.lost(error)
            raise error


def checked(raw: Raw, result: Any) -> Any:
    """Give a result that is none of an error. Raises psycopg.Error."""
    if result.status in _FINE:
        return result
    if raw.pgconn.status != pq.ConnStatus.OK:
        raise psycopg.OperationalError(raw.pgconn.get_error_message())
    raise error_from_result(result)
