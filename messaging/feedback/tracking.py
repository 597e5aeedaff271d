"""Opens and clicks of our own links: kept as they happen, and applied in batches.

Keeping is one statement, and whoever clicked is not kept waiting by what follows from it. An email
that is opened a thousand times is one row.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from messaging.feedback import receipts
from messaging.feedback.receipts import Receipt
from messaging.models import Attempt, Delivery, Hit
from rme.core import ids
from rme.core.channels import Channel
from rme.core.db import clock

BATCH = 500
KEPT_DAYS = 7
AT_ONCE = timedelta(seconds=2)
"""Nobody reads so soon after an email has left: a scanner did."""
_H, _D, _A = Hit._meta.db_table, Delivery._meta.db_table, Attempt._meta.db_table

_KEEP = f"""
INSERT INTO {_H} (id, organization_id, delivery_id, kind, machine)
SELECT %s, d.organization_id, d.id, %s, %s OR EXISTS (
  SELECT FROM {_A} a WHERE a.delivery_id = d.id AND a.id >= %s AND a.started_at > %s)
FROM {_D} d WHERE d.id = %s AND d.channel = %s
ON CONFLICT (delivery_id, kind, machine) DO NOTHING
"""
_DUE = f"""
SELECT h.id, h.delivery_id, h.kind, h.machine, d.status IN ('SENDING', 'ACCEPTED')
FROM {_H} h JOIN {_D} d ON d.id = h.delivery_id
WHERE h.due_at <= statement_timestamp() ORDER BY h.due_at LIMIT {BATCH}
FOR UPDATE OF h, d SKIP LOCKED
"""
_DONE = f"""
UPDATE {_H} SET due_at = CASE WHEN id = ANY(%s) THEN statement_timestamp() + interval '5 seconds'
END WHERE id = ANY(%s)
"""


def store(delivery_id: UUID, kind: str, *, machine: bool) -> bool:
    """Keep an open or a click, and say whether it is news. One statement."""
    now = clock.now()
    values: list[Any] = [
        *(ids.new_id(), kind, machine, ids.earliest_concurrent(delivery_id), now - AT_ONCE),
        *(delivery_id, Channel.EMAIL),
    ]
    with connection.cursor() as cursor:
        cursor.execute(_KEEP, values)
        return bool(cursor.rowcount)


def is_known(delivery_id: UUID) -> bool:
    """Say whether a delivery is recent enough for its links to be followed."""
    age = clock.now() - ids.moment(delivery_id)
    return age < timedelta(days=settings.MESSAGE_RETENTION_DAYS)


def apply_due() -> int:
    """Apply one batch and give how many that were. Several may work at once.

    What is opened while a worker has yet to write down that it left is put off.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_DUE)
            rows = cursor.fetchall()
        if not rows:
            return 0
        receipts.apply(
            [
                Receipt(delivery_id, kind, channel=Channel.EMAIL, machine=machine)
                for _, delivery_id, kind, machine, early in rows
                if not early
            ]
        )
        with connection.cursor() as cursor:
            cursor.execute(_DONE, [[row[0] for row in rows if row[4]], [row[0] for row in rows]])
    return len(rows)


def purge() -> None:
    """Delete what was applied, or what nobody will ever apply, some days ago."""
    Hit.objects.filter(at__lt=clock.now() - timedelta(days=KEPT_DAYS)).delete()
