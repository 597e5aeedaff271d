"""One after the other: the last look at the gates, and what people decide.

A worker looks at the gates and commits its attempts under a lock that the workers of an
organization share. Who writes down what a person decided, or suppresses an address for another
reason, has it alone until that is committed. So no attempt begins after a decision that its worker
did not see. Whoever needs rows of deliveries too takes the lock before them: it is a transaction's,
and in another order two could wait for each other.
"""

from collections.abc import Iterable

from rme.core.db import prepared_statements, sql


def lock_name(organization_id: str) -> str:
    """Name the lock, for `hashtextextended(name, 0)`; the chain of consent is under it too."""
    return f"consent:{organization_id}"


def take_shared(organization_ids: Iterable[str]) -> None:
    """Let nobody decide until the transaction ends; others may look too."""
    _take("pg_advisory_xact_lock_shared", organization_ids)


def take_exclusive(organization_ids: Iterable[str]) -> None:
    """Let nobody look until the transaction ends."""
    _take("pg_advisory_xact_lock", organization_ids)


def _take(function: str, organization_ids: Iterable[str]) -> None:
    """Take locks in one order: in another, two could wait for each other."""
    ordered = sorted(set(organization_ids))
    if not ordered:
        return
    statement = f"SELECT {function}(hashtextextended(name, 0)) FROM unnest(%s::text[]) name"
    prepared_statements.send(statement, [sql.array(list(map(lock_name, ordered)))])
