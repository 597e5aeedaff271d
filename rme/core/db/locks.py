"""Locks by name that hold across processes (PostgreSQL's advisory locks).

A session holds them, not a transaction, because the guarded code may call other machines. When a
process dies, PostgreSQL releases them. Behind a pooler the block has a session of its own
(`rme.core.db.postgresql.direct`).
"""

import hashlib
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager

from rme.core.db import statement_timeout
from rme.core.db.postgresql import direct


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
