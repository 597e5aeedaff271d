"""Opens and clicks of emails: stored as they happen, and applied in batches."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from messaging.domain.channels import Channel
from messaging.models import Attempt, Delivery, Hit
from rme.core import ids
from rme.core.db import sql
from rme.core.db.due import is_due

BATCH = 500
_H, _D, _A = Hit._meta.db_table, Delivery._meta.db_table, Attempt._meta.db_table

# Plan: the primary key of deliveries; attempt_of_delivery in the partitions since the delivery.
# Run by: store, for feedback.tracking
STORE = f"""
INSERT INTO {_H} (id, organization_id, delivery_id, kind, machine)
SELECT %(id)s, d.organization_id, d.id, %(kind)s, %(machine)s OR EXISTS (
  SELECT FROM {_A} a
  WHERE a.delivery_id = d.id AND a.id >= %(since)s AND a.started_at > %(sent_after)s)
FROM {_D} d WHERE d.id = %(delivery)s AND (d.channel = '{Channel.EMAIL}' OR EXISTS (
  SELECT FROM {_A} a
  WHERE a.delivery_id = d.id AND a.id >= %(since)s AND a.channel = '{Channel.EMAIL}'))
ON CONFLICT (delivery_id, kind, machine) DO NOTHING
"""
# Plan: hit_due, in its order.
# Run by: lock_due, for feedback.tracking
LOCK_DUE = f"""
SELECT h.id, h.delivery_id, h.kind, h.machine FROM {_H} h
WHERE {is_due("h")}
ORDER BY h.due_at LIMIT {BATCH}
FOR UPDATE SKIP LOCKED
"""
# Plan: the primary key, once for each.
# Run by: finish, for feedback.tracking
FINISH = f"""
UPDATE {_H} SET due_at = CASE WHEN id = ANY(%(early)s::uuid[])
  THEN statement_timestamp() + interval '5 seconds' END
WHERE id = ANY(%(all)s::uuid[])
"""


class DueHit(NamedTuple):
    """A stored open or click."""

    id: UUID
    delivery_id: UUID
    kind: str
    machine: bool


def store(delivery_id: UUID, kind: str, *, machine: bool, machine_since: datetime) -> bool:
    """Store an open or a click by one statement; return whether it is new.

    It was made by a machine, too, if an attempt of the delivery began after `machine_since`.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            STORE,
            {
                "id": ids.new_id(),
                "kind": kind,
                "machine": machine,
                "since": ids.earliest_concurrent(delivery_id),
                "sent_after": machine_since,
                "delivery": delivery_id,
            },
        )
        return bool(cursor.rowcount)


def lock_due() -> list[DueHit]:
    """Lock and return the next batch."""
    return [DueHit(*row) for row in sql.fetch(LOCK_DUE)]


def finish(hits: Collection[DueHit], early: Collection[UUID]) -> None:
    """End a batch; `early` ones are tried again in some seconds."""
    with connection.cursor() as cursor:
        cursor.execute(FINISH, {"early": list(early), "all": [hit.id for hit in hits]})
