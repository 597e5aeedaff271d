"""Locks by name that hold across processes (PostgreSQL's advisory locks).

They are the connection's, not a transaction's: what they guard may call other machines. A process
that dies lets go of them.
"""

import hashlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from rme.core.db import statement_timeout


class Busy(Exception):
    """Somebody else held a lock for too long."""


@contextmanager
def holding(names: Collection[str], until: float) -> Iterator[None]:
    """Hold locks while the block runs, waiting for them up to a moment of the monotonic clock.

    Raises Busy. All are taken in one order, so that no two wait for each other.
    """
    keys = sorted(map(_key, names))
    try:
        with statement_timeout.bounded(until) as cursor:
            cursor.execute("SELECT pg_advisory_lock(key) FROM unnest(%s::bigint[]) key", [keys])
    except statement_timeout.StatementLate as error:
        _release(keys)  # the first of them may have been had
        raise Busy from error
    try:
        yield
    finally:
        _release(keys)


@contextmanager
def alone(name: str) -> Iterator[bool]:
    """Hold a lock while the block runs if nobody has it; gives whether that is so."""
    with statement_timeout.unbounded() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [_key(name)])
        (taken,) = cursor.fetchone()
    try:
        yield taken
    finally:
        if taken:
            _release([_key(name)])


def _release(keys: list[int]) -> None:
    with statement_timeout.unbounded() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(key) FROM unnest(%s::bigint[]) key", [keys])


def _key(name: str) -> int:
    digest = hashlib.sha256(name.encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], signed=True)
