"""The prepared statements of one connection, sent to libpq directly: alone or as a pipeline.

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
from rme.core.db.availability import BoundedConnection

Rows = list[tuple[Any, ...]]
MOST = 200
"""The number of statements that a connection keeps prepared; then all are prepared anew."""
_FINE = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)


class Statement:
    """A statement with `%s` for its parameters, its parameters in PostgreSQL's text format, and
    its rows once it was executed.
    """

    __slots__ = ("parameters", "result", "text")

    def __init__(
        self, text: str, parameters: Sequence[bytes | None] = (), result: Rows | None = None
    ) -> None:
        self.text = text
        self.parameters = parameters
        self.result = result


class DirectConnection:
    """The statements that are prepared on one psycopg connection, and the way to execute them.

    The psycopg connection is passed with each call, so that this object does not keep it alive.
    """

    def __init__(self, raw: BoundedConnection) -> None:
        self._names: dict[str, bytes] = {}
        self._numbers = count(1)
        self._deallocations = raw.deallocations
        self._loader = Transformer(raw.adapters)

    def run(
        self, raw: BoundedConnection, statements: Sequence[Statement], *, commit: bool = False
    ) -> None:
        """Execute statements in one round trip, and store their rows in them.

        They belong to the transaction that is open. With none open they are a transaction by
        themselves if the connection commits by itself, else they open one. With `commit` the
        transaction ends after them. Raises psycopg.Error.
        """
        began_idle = raw.pgconn.transaction_status == pq.TransactionStatus.IDLE
        try:
            self._run(raw, statements, commit=commit)
        except InvalidSqlStatementName:  # dropped behind psycopg's back, as DISCARD ALL does
            self._names.clear()
            if not began_idle:
                raise  # the transaction has failed with it
            if raw.pgconn.transaction_status != pq.TransactionStatus.IDLE:
                raw.pgconn.send_query(b"ROLLBACK")
                checked(raw, conclude(raw))
            self._run(raw, statements, commit=commit)

    def _run(
        self, raw: BoundedConnection, statements: Sequence[Statement], *, commit: bool
    ) -> None:
        names = self._names_of(raw, [statement.text for statement in statements])
        idle = raw.pgconn.transaction_status == pq.TransactionStatus.IDLE
        begin = idle and not raw.autocommit
        if len(statements) == 1 and not begin and not commit:
            (statement,) = statements
            raw.pgconn.send_query_prepared(names[0], statement.parameters)
            statement.result = self._rows(checked(raw, conclude(raw)))
        else:
            self._run_as_pipeline(raw, names, statements, begin=begin, commit=commit)

    def _run_as_pipeline(
        self,
        raw: BoundedConnection,
        names: Sequence[bytes],
        statements: Sequence[Statement],
        *,
        begin: bool,
        commit: bool,
    ) -> None:
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
            results = receive(pgconn)
            pgconn.exit_pipeline_mode()
        except BaseException:
            raw.close()  # replies that were not read would be taken for those of later statements
            raise
        for result in results:
            checked(raw, result)
        for statement, result in zip(statements, results[begin:], strict=False):
            statement.result = self._rows(result)

    def _rows(self, result: Any) -> Rows:
        if not result.nfields:
            return []
        self._loader.set_pgresult(result)
        rows = self._loader.load_rows(0, result.ntuples, tuple)
        self._loader.set_pgresult(None)
        return rows

    def _names_of(self, raw: BoundedConnection, texts: Sequence[str]) -> list[bytes]:
        """Return the names by which statements are prepared; prepare those that are not yet."""
        if self._deallocations != raw.deallocations:
            self._deallocations = raw.deallocations
            self._names.clear()
        fresh = [text for text in texts if text not in self._names]
        if fresh and len(self._names) + len(fresh) > MOST:
            self._close_all(raw)
            fresh = list(texts)
        for text in dict.fromkeys(fresh):
            self._prepare(raw, text)
        return [self._names[text] for text in texts]

    def _prepare(self, raw: BoundedConnection, text: str) -> None:
        name = b"rme_%d" % next(self._numbers)
        first, *others = text.split("%s")
        numbered = first + "".join(f"${place}{part}" for place, part in enumerate(others, 1))
        raw.pgconn.send_prepare(name, numbered.replace("%%", "%").encode())
        checked(raw, conclude(raw))
        self._names[text] = name

    def _close_all(self, raw: BoundedConnection) -> None:
        """Close our statements, and not psycopg's. To close one that is gone is no error."""
        for name in self._names.values():
            raw.pgconn.send_close_prepared(name)
            checked(raw, conclude(raw))
        self._names.clear()


def receive(pgconn: pq.abc.PGconn) -> list[Any]:
    """Return the results of all statements of a pipeline. Raises psycopg.OperationalError."""
    replies = _Replies(pgconn)
    results: list[Any] = []
    while True:
        result = replies.next()
        if result is None:
            continue  # the end of one statement's results
        if result.status == pq.ExecStatus.PIPELINE_SYNC:
            availability.reach.found()
            return results
        results.append(result)
        if pgconn.status != pq.ConnStatus.OK:
            raise psycopg.OperationalError(pgconn.get_error_message())


def conclude(raw: BoundedConnection) -> object:
    """Return the result of the one statement that was sent. Raises psycopg.OperationalError."""
    try:
        replies = _Replies(raw.pgconn)
        result = last = replies.next()
        while last is not None:
            last = replies.next()
        if result is None:
            raise psycopg.OperationalError(raw.pgconn.get_error_message())
        availability.reach.found()
        return result
    except BaseException:
        raw.close()  # replies that were not read would be taken for those of later statements
        raise


class _Replies:
    """The server's replies to what was sent, within the time that they may take."""

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
        """Wait for the next result; None is the end of a statement's results."""
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


def checked(raw: BoundedConnection, result: Any) -> object:
    """Return a result that is no error. Raises psycopg.Error."""
    if result.status in _FINE:
        return result
    if raw.pgconn.status != pq.ConnStatus.OK:
        raise psycopg.OperationalError(raw.pgconn.get_error_message())
    raise error_from_result(result)
