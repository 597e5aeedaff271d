"""Locks by name that hold across processes (PostgreSQL's advisory locks).

A session holds those of `holding` and `alone`, because the guarded code may call other machines.
Behind a pooler the block has a session of its own (`rme.core.db.postgresql.direct`). The others are
held by the transaction. When a process dies, PostgreSQL releases its locks.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime

from django.db import connection

from rme.core.db import prepared_statements, sql, statement_timeout
from rme.core.db.postgresql import direct

UNTIL_COMMIT = (
    "SELECT pg_advisory_xact_lock(hashtextextended(name, 0)) FROM unnest(%s::text[]) name"
)
UNTIL_COMMIT_SHARED = UNTIL_COMMIT.replace("lock(", "lock_shared(")
UNTIL_COMMIT_ONE = "SELECT pg_advisory_xact_lock(hashtextextended(%s, %s)), clock_timestamp()"


class Busy(Exception):
    """A lock was not available in time."""


@contextmanager
def holding(names: Collection[str], until: float) -> Iterator[None]:
    """Hold locks while the block runs. Raises Busy if they are not available by `until`.

    `until` is a moment of the monotonic clock. Locks are taken in one order, against deadlocks.
    """
    keys = sorted(map(_key, names))
    with ExitStack() as stack:
        is_apart = stack.enter_context(direct.session())
        try:
            with statement_timeout.bounded(until) as cursor:
                cursor.execute("SELECT pg_advisory_lock(key) FROM unnest(%s::bigint[]) key", [keys])
        except statement_timeout.StatementLate as error:
            _release(keys)  # some of them may have been taken
            raise Busy from error
        stack.callback(_release, keys)
        if is_apart:  # the caller's time limit is of the connection that it had before
            stack.enter_context(statement_timeout.bounded(until))
        yield


@contextmanager
def alone(name: str) -> Iterator[bool]:
    """Hold a lock while the block runs if it is free; yield whether it was."""
    with direct.session():
        with statement_timeout.unbounded() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [_key(name)])
            (has_lock,) = cursor.fetchone()
        try:
            yield has_lock
        finally:
            if has_lock:
                _release([_key(name)])


def _release(keys: list[int]) -> None:
    with statement_timeout.unbounded() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(key) FROM unnest(%s::bigint[]) key", [keys])


def _key(name: str) -> int:
    digest = hashlib.sha256(name.encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], signed=True)


# --- of transactions ------------------------------------------------------------------------------
def until_commit(
    names: Iterable[str],
    *,
    shared: bool = False,
    batch: prepared_statements.Batch | None = None,
) -> None:
    """Take locks until the transaction ends, in sorted order, so that two cannot deadlock.

    `shared` locks keep out only those that are not. They are taken with the batch, or at once
    without one.
    """
    if ordered := sorted(set(names)):
        send = batch.send if batch else prepared_statements.execute
        send(UNTIL_COMMIT_SHARED if shared else UNTIL_COMMIT, [sql.array(ordered)])


def until_commit_one(name: str, kind: int = 0) -> datetime:
    """Take a lock until the transaction ends; return the database's time once it is held.

    Locks of another `kind` are others; those of `until_commit` have 0.
    """
    with connection.cursor() as cursor:
        cursor.execute(UNTIL_COMMIT_ONE, [name, kind])
        now: datetime = cursor.fetchone()[1]
    return now.astimezone(UTC)
