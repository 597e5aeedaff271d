"""The points around each transaction: there threads take turns, and faults happen.

Each exchange with the server passes `BoundedConnection.wait`. A transaction begins with the first
one on an idle connection, and has ended when the connection is idle again. In some histories others
have a turn before each statement of a transaction and before its commit, too; see `lock_waits`.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch
from weakref import WeakSet

import psycopg
from django.db import connection, connections
from psycopg import pq
from psycopg.errors import DeadlockDetected

from messaging.consent import gate_lock
from messaging.delivery import claims
from messaging.domain.statuses import Status
from messaging.models import Delivery
from messaging.store import due_work
from messaging.store.due_organizations import WaitingOrganization
from rme.core.db import pipeline as pipelines
from rme.core.db import prepared_statements, sql
from rme.core.db.availability import BoundedConnection
from rme.core.db.pipeline import Rows, Statement
from rme.core.db.prepared_statements import Batch, Parameter, PendingRows
from tests.simulation.world.faults import Faults
from tests.simulation.world.lock_waits import LockWaits
from tests.simulation.world.turns import Killed, LogicalThread, current

_IDLE = pq.TransactionStatus.IDLE
_OFF = pq.PipelineStatus.OFF
_LOCAL = ("_commit_gen", "_rollback_gen", "_set_autocommit_gen")
"""What sends nothing on an idle connection."""
_END_OF_PIPELINE = "_exit_gen"
_ROLLBACK, _COMMIT = "_rollback_gen", "_commit_gen"
_real_wait = BoundedConnection.wait
_real_server_wait: Callable[..., Any] = psycopg.Connection.wait
_real_take_shared = gate_lock.take_shared
_real_pipeline = pipelines._run
_real_send, _real_execute = Batch.send, prepared_statements.execute


def install() -> None:
    """Leave out what costs much and decides nothing here, for the life of this process.

    Settings of the planner are half of all statements of a history: the database has them for all
    (`database.SETTINGS`). The search for organizations that is fair to all of them is a sixth of
    the server's time: here is only one.
    """

    def send(
        batch: Batch, text: str, parameters: Sequence[Parameter] = (), *, setting: str = ""
    ) -> PendingRows:
        return _real_send(batch, text, parameters)

    def execute(text: str, parameters: Sequence[Parameter] = (), *, setting: str = "") -> Rows:
        return _real_execute(text, parameters)

    setattr(Batch, "send", send)  # noqa: B010 mypy refuses to assign to a method
    vars(prepared_statements)["execute"] = execute
    vars(sql)["BY_INDEX"] = sql.BY_GENERIC_PLAN  # where a cursor executes it
    vars(claims)["_SEARCH"] = _DueOfOne(Status.ACCEPTED)
    vars(due_work)["_SEARCH"] = _DueOfOne(Status.SCHEDULED)


class _DueOfOne:
    """`DueStatement` for one organization: its priorities that have something due."""

    def __init__(self, status: Status) -> None:
        self._text = (
            f"SELECT DISTINCT priority, organization_id FROM {Delivery._meta.db_table} "
            f"WHERE status = '{status}' AND (%(channel)s = '' OR channel = %(channel)s) "
            "AND due_at <= statement_timestamp() AND organization_id <> ALL(%(without)s::text[])"
        )

    def find(self, channel: str = "", without: Collection[str] = ()) -> list[WaitingOrganization]:
        values = {"channel": channel, "without": sql.array(without)}
        rows = sql.read_in_order(self._text, values)
        return sorted(WaitingOrganization(*row) for row in rows)


class _Points:
    """The points of one history around and within transactions."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.begun: WeakSet[BoundedConnection] = WeakSet()

    def exchange(
        self,
        thread: LogicalThread,
        raw: BoundedConnection,
        gen: Generator[Any, Any, Any],
        run: Callable[[], Any],
    ) -> Any:
        """Run an exchange with the server, with the points before and after it."""
        name = gen.gi_code.co_name
        if raw in self.begun:
            is_open = raw.pgconn.pipeline_status == _OFF and name != _ROLLBACK
            if self.faults.interleaves and is_open and not thread.process.killed:
                self._within(thread, raw, name)
        elif raw.pgconn.transaction_status == _IDLE:
            if name in _LOCAL:
                return run()
            self.faults.before_transaction(thread)
            self.begun.add(raw)
        try:
            answer = run()
        except BaseException as error:
            if isinstance(error, DeadlockDetected):
                self.faults.turns.deadlocks.append(f"{thread.process.name}/{thread.name}: {error}")
            if raw.pgconn.transaction_status == _IDLE:
                self._end(raw, thread)
            raise
        is_out = raw.pgconn.pipeline_status == _OFF or name == _END_OF_PIPELINE
        if is_out and raw.pgconn.transaction_status == _IDLE:
            self._end(raw, thread, is_committed=name != _ROLLBACK)
            if not thread.process.killed:
                self.faults.after_transaction(thread)
        return answer

    def _within(self, thread: LogicalThread, raw: BoundedConnection, name: str) -> None:
        try:
            self.faults.within_transaction(thread)
            if name == _COMMIT:
                self.faults.before_commit()
        except (Killed, psycopg.OperationalError) as error:
            # Where a process is killed at its commit, Django would go on as if it was committed.
            if name == _COMMIT or not isinstance(error, Killed):
                _real_wait(raw, raw._rollback_gen())
                self._end(raw, thread)
            raise

    def _end(
        self, raw: BoundedConnection, thread: LogicalThread, *, is_committed: bool = False
    ) -> None:
        self.begun.discard(raw)
        if is_committed:
            if thread.takes_gate:
                thread.gate_at = self.faults.clock.now
            for note in thread.on_commit:
                note()
        thread.takes_gate = False
        thread.on_commit.clear()


@contextmanager
def with_faults(faults: Faults, locks: LockWaits) -> Iterator[None]:
    """Let threads take turns before each transaction or statement, and faults happen around it."""
    points = _Points(faults)

    def wait(
        raw: BoundedConnection,
        gen: Generator[Any, Any, Any],
        interval: float = 0.1,
        timeout: float | None = None,
    ) -> Any:
        thread = current()
        run = partial(_real_wait, raw, gen, interval, timeout)
        if thread is None or raw.closed:
            return run()
        return points.exchange(thread, raw, gen, run)

    def wait_for_server(
        raw: psycopg.Connection[Any], gen: Generator[Any, Any, Any], *limits: float | None
    ) -> Any:
        if current() is None or not isinstance(raw, BoundedConnection):
            return _real_server_wait(raw, gen, *limits)  # such as that of the locks' watcher
        return locks.exchange(faults.turns, raw, gen)

    with ExitStack() as stack:
        stack.enter_context(patch.object(BoundedConnection, "wait", wait))
        stack.enter_context(patch.object(gate_lock, "take_shared", _take_shared))
        if faults.interleaves:
            faults.turns.is_stalled = locks.stalled
            stack.enter_context(patch.object(psycopg.Connection, "wait", wait_for_server))
            stack.enter_context(patch.object(pipelines, "_run", partial(_run_one_by_one, faults)))
        yield


def _run_one_by_one(
    faults: Faults,
    raw: BoundedConnection,
    statements: Sequence[Statement],
    *,
    begin: bool,
    commit: bool,
) -> None:
    """Run the statements of a pipeline as the server does: others come between any two of them."""
    alone = len(statements) == 1 and begin == commit
    first = [Statement("BEGIN")] if begin and not alone else []
    for statement in (*first, *statements):
        _real_pipeline(raw, [statement], begin=False, commit=False)
    if commit and not alone:
        faults.before_commit()
        _real_pipeline(raw, [Statement("COMMIT")], begin=False, commit=False)


def _take_shared(organization_ids: Iterable[str], batch: Batch | None = None) -> None:
    """Take the gate lock as a worker does, and remember that this transaction has it."""
    _real_take_shared(organization_ids, batch)
    thread = current()
    if thread is not None:
        thread.takes_gate = True


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
