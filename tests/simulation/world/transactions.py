"""The points around each transaction: there threads take turns, and faults happen.

Each exchange with the server passes `BoundedConnection.wait`. A transaction begins with the first
one on an idle connection, and has ended when the connection is idle again. Within a transaction no
other thread has a turn: PostgreSQL's locks would let it wait for a thread that waits for its turn.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch
from weakref import WeakSet

from django.db import connection, connections
from psycopg import pq

from rme.core.db.availability import BoundedConnection
from tests.simulation.world.faults import Faults
from tests.simulation.world.turns import current

_IDLE = pq.TransactionStatus.IDLE
_OFF = pq.PipelineStatus.OFF
_LOCAL = ("_commit_gen", "_rollback_gen", "_set_autocommit_gen")
"""What sends nothing on an idle connection."""
_END_OF_PIPELINE = "_exit_gen"
_real_wait = BoundedConnection.wait


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
    """Let go of what the session holds, as PostgreSQL does when a connection ends."""
    raw = connection.connection
    if raw is None:
        return
    if connection.in_atomic_block or raw.pgconn.transaction_status != _IDLE:
        connection.close()
    else:
        with patch.object(BoundedConnection, "wait", _real_wait):
            raw.execute("SELECT pg_advisory_unlock_all()")
