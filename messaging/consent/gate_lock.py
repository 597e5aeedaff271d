"""The lock between the last check before sending and what people decide.

A worker checks the gates and commits its attempts under a lock that all workers of an organization
share. Whatever records a person's decision, or suppresses an address for another reason, holds the
lock alone until it has committed. So no attempt begins after a decision that its worker did not
see.

Lock order: a transaction that also needs rows of deliveries takes this lock first. Otherwise two
transactions could deadlock. Both locks last until the transaction ends.
"""

from collections.abc import Iterable

from rme.core.db import prepared_statements, sql


def lock_name(organization_id: str) -> str:
    """Return the lock's name, for `hashtextextended(name, 0)`; the consent chain uses it too."""
    return f"consent:{organization_id}"


def take_shared(
    organization_ids: Iterable[str], batch: prepared_statements.Batch | None = None
) -> None:
    """Block new decisions until the transaction ends; other workers may check the gates too.

    The lock is taken with a batch, or at once without one.
    """
    _take("pg_advisory_xact_lock_shared", organization_ids, batch)


def take_exclusive(
    organization_ids: Iterable[str], batch: prepared_statements.Batch | None = None
) -> None:
    """Block checks of the gates until the transaction ends; see `take_shared` for the batch."""
    _take("pg_advisory_xact_lock", organization_ids, batch)


def _take(
    function: str, organization_ids: Iterable[str], batch: prepared_statements.Batch | None
) -> None:
    """Take the locks in sorted order, so that two transactions cannot deadlock."""
    ordered = sorted(set(organization_ids))
    if not ordered:
        return
    statement = f"SELECT {function}(hashtextextended(name, 0)) FROM unnest(%s::text[]) name"
    send = batch.send if batch else prepared_statements.execute
    send(statement, [sql.array(list(map(lock_name, ordered)))])
