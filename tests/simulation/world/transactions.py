"""The points around each transaction: there threads take turns, and faults happen.

Each exchange with the server passes `BoundedConnection.wait`. A transaction begins with the first
one on an idle connection, and has ended when the connection is idle again. Within a transaction no
other thread has a turn: PostgreSQL's locks would let it wait for a thread that waits for its turn.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch
from weakref import WeakSet

from django.db import connection, connections
from psycopg import pq

from rme.core.db import prepared_statements, sql
from rme.core.db.availability import BoundedConnection
from rme.core.db.prepared_statements import Parameter, PendingRows
from tests.simulation.world.faults import Faults
from tests.simulation.world.turns import current

_IDLE = pq.TransactionStatus.IDLE
_OFF = pq.PipelineStatus.OFF
_LOCAL = ("_commit_gen", "_rollback_gen", "_set_autocommit_gen")
"""What sends nothing on an idle connection."""
_END_OF_PIPELINE = "_exit_gen"
_real_wait = BoundedConnection.wait
_real_send = prepared_statements.send


def install() -> None:
    """Send no settings of the planner: the database has them for all (`database.SETTINGS`).

    They are half of all statements of a history.
    """

    def send(text: str, parameters: Sequence[Parameter] = (), *, setting: str = "") -> PendingRows:
        return _real_send(text, parameters)

    vars(prepared_statements)["send"] = send
    vars(sql)["BY_INDEX"] = sql.BY_GENERIC_PLAN  # where a cursor executes it


@contextmanager
def with_faults(faults: Faults) -> Iterator[None]:
    """Let threads take turns before each transaction, and faults happen around it."""
    begun: WeakSet[BoundedConnection] = WeakSet()

    def wait(
        raw: BoundedConnection,
        gen: Generator[Any, Any, Any],
        interval: float = 0.1,
        timeout: float | None = None,
    ) -> Any:
        thread = current()
        if thread is None or raw.closed:
            return _real_wait(raw, gen, interval, timeout)
        name = gen.gi_code.co_name
        if raw not in begun and raw.pgconn.transaction_status == _IDLE:
            if name in _LOCAL:
                return _real_wait(raw, gen, interval, timeout)
            faults.before_transaction(thread)
            begun.add(raw)
        try:
            answer = _real_wait(raw, gen, interval, timeout)
        except BaseException:
            if raw.pgconn.transaction_status == _IDLE:
                begun.discard(raw)
            raise
        is_out = raw.pgconn.pipeline_status == _OFF or name == _END_OF_PIPELINE
        if is_out and raw.pgconn.transaction_status == _IDLE:
            begun.discard(raw)
            faults.after_transaction(thread)
        return answer

    with patch.object(BoundedConnection, "wait", wait):
        yield


def lose_connection() -> None:
    """Give up the connection of this thread after an error, with what its session holds."""
    end_session()
    connections.close_all()


def end_session() -> None:
    """Release what the session of a process that was killed holds, as PostgreSQL does."""
    raw = connection.connection
    if raw is None:
        return
    if connection.in_atomic_block or raw.pgconn.transaction_status != _IDLE:
        connection.close()
    else:
        with patch.object(BoundedConnection, "wait", _real_wait):
            raw.execute("SELECT pg_advisory_unlock_all()")
