"""Opens and clicks of tracked emails: stored as they happen, and applied in batches.

Storing is one statement, so the person who clicked does not wait for the rest. An email that is
opened a thousand times is one row.
"""

from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from messaging.feedback import receipts
from messaging.feedback.receipts import Receipt
from messaging.models import Attempt, Delivery, Hit
from rme.core import ids
from rme.core.channels import Channel
from rme.core.db import clock
from rme.tenants import cells

BATCH = 500
STORED_DAYS = 7
AT_ONCE = timedelta(seconds=2)
"""An open this soon after the email left was made by a scanner, not by a person."""
_H, _D, _A = Hit._meta.db_table, Delivery._meta.db_table, Attempt._meta.db_table

_STORE = f"""
INSERT INTO {_H} (id, organization_id, delivery_id, kind, machine)
SELECT %s, d.organization_id, d.id, %s, %s OR EXISTS (
  SELECT FROM {_A} a WHERE a.delivery_id = d.id AND a.id >= %s AND a.started_at > %s)
FROM {_D} d WHERE d.id = %s AND (d.channel = '{Channel.EMAIL}' OR EXISTS (
  SELECT FROM {_A} a WHERE a.delivery_id = d.id AND a.id >= %s AND a.channel = '{Channel.EMAIL}'))
ON CONFLICT (delivery_id, kind, machine) DO NOTHING
"""
_DUE = f"""
SELECT h.id, h.delivery_id, h.kind, h.machine, d.status = 'SENDING'
FROM {_H} h JOIN {_D} d ON d.id = h.delivery_id
WHERE h.due_at <= statement_timestamp() AND {cells.here("h.organization_id")}
ORDER BY h.due_at LIMIT {BATCH}
FOR UPDATE OF h, d SKIP LOCKED
"""
_DONE = f"""
UPDATE {_H} SET due_at = CASE WHEN id = ANY(%s) THEN statement_timestamp() + interval '5 seconds'
END WHERE id = ANY(%s)
"""


class _DueHit(NamedTuple):
    """A stored open or click. `in_progress`: a worker has the delivery at this moment."""

    id: UUID
    delivery_id: UUID
    kind: str
    machine: bool
    in_progress: bool


def store(delivery_id: UUID, kind: str, *, machine: bool) -> bool:
    """Store an open or a click by one statement; return whether it is new.

    Raise what `cells.require_here` raises: while organizations move, that takes a query.
    """
    if cells.absent():
        rows = Delivery.objects.filter(pk=delivery_id)
        for organization_id in rows.values_list("organization_id", flat=True):
            cells.require_here(organization_id)
    now, since = clock.now(), ids.earliest_concurrent(delivery_id)
    values: list[Any] = [ids.new_id(), kind, machine, since, now - AT_ONCE, delivery_id, since]
    with connection.cursor() as cursor:
        cursor.execute(_STORE, values)
        return bool(cursor.rowcount)


def is_recent(delivery_id: UUID) -> bool:
    """Return whether a delivery is recent enough for its links to redirect."""
    age = clock.now() - ids.moment(delivery_id)
    return age < timedelta(days=settings.MESSAGE_RETENTION_DAYS)


def apply_due() -> int:
    """Apply one batch and return its size. Several workers may run this at once.

    An open that comes before the worker has recorded the outcome of the attempt is tried later.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_DUE)
            hits = [_DueHit(*row) for row in cursor.fetchall()]
        if not hits:
            return 0
        receipts.apply(
            [
                Receipt(hit.delivery_id, hit.kind, channel=Channel.EMAIL, machine=hit.machine)
                for hit in hits
                if not hit.in_progress
            ]
        )
        early = [hit.id for hit in hits if hit.in_progress]
        with connection.cursor() as cursor:
            cursor.execute(_DONE, [early, [hit.id for hit in hits]])
    return len(hits)


def purge() -> None:
    """Delete opens and clicks that are some days old, applied or not."""
    Hit.objects.filter(at__lt=clock.now() - timedelta(days=STORED_DAYS)).delete()
