"""The lock between the last check before sending and what people decide.

A worker checks the gates and commits its attempts under a lock that all workers of an organization
share. Whatever records a person's decision, or suppresses an address for another reason, holds the
lock alone until it has committed. So no attempt begins after a decision that its worker did not
see.

Lock order: a transaction that also needs rows of deliveries takes this lock first. Otherwise two
transactions could deadlock. Both locks last until the transaction ends.
"""

from collections.abc import Iterable
from datetime import datetime

from rme.core.db import locks
from rme.core.db.prepared_statements import Batch


def _name(organization_id: str) -> str:
    return f"consent:{organization_id}"


def take_shared(organization_ids: Iterable[str], batch: Batch | None = None) -> None:
    """Block new decisions until the transaction ends; other workers may check the gates too.

    The lock is taken with a batch, or at once without one.
    """
    locks.until_commit(map(_name, organization_ids), shared=True, batch=batch)


def take_exclusive(organization_ids: Iterable[str], batch: Batch | None = None) -> None:
    """Block checks of the gates until the transaction ends; see `take_shared` for the batch."""
    locks.until_commit(map(_name, organization_ids), batch=batch)


def take_chain(organization_id: str) -> datetime:
    """Block checks of the gates, and other entries of the ledger, until the transaction ends.

    Return the database's time after locking.
    """
    return locks.until_commit_one(_name(organization_id))
