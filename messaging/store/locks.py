"""Locks deliveries by their ids; all who then read or change what belongs to them start here.

A statement that locks must not choose partitions while it runs: docs/architecture.md, "Locks and
pruning". So a lock is a statement of its own, and what joins the deliveries comes after it. That
statement also sees what the transactions have committed for which this one has waited.
"""

from collections.abc import Collection
from uuid import UUID

from messaging.models import Delivery
from rme.core.db import sql

# Plan (BY_GENERIC_PLAN): the primary key, in the partitions that the bounds of the keys name.
# Run by: lock, for store.feedback.receipts and feedback.receipts
LOCK = (
    f"SELECT id FROM {Delivery._meta.db_table} WHERE {sql.among('id', 'deliveries')} "
    "ORDER BY id FOR UPDATE"
)
# Plan (BY_GENERIC_PLAN): that of LOCK.
# Run by: lock_free, for feedback.tracking
LOCK_FREE = f"{LOCK} SKIP LOCKED"


def lock(delivery_ids: Collection[UUID | str]) -> None:
    """Lock deliveries in the order of their ids."""
    if delivery_ids:
        keys = sql.keys("deliveries", delivery_ids)
        sql.read_in_order(LOCK, keys, setting=sql.BY_GENERIC_PLAN)


def lock_free(delivery_ids: Collection[UUID | str]) -> set[UUID]:
    """Lock those deliveries that no other transaction has locked, and return their ids."""
    if not delivery_ids:
        return set()
    keys = sql.keys("deliveries", delivery_ids)
    rows = sql.read_in_order(LOCK_FREE, keys, setting=sql.BY_GENERIC_PLAN)
    return {delivery_id for (delivery_id,) in rows}
