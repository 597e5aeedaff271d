"""Cancelling a scheduled message. Of a cancel and the message's release, only one ever wins."""

from uuid import UUID

from django.db import connection, transaction

from messaging.models import Delivery, Message
from messaging.models.statuses import EventType, Status
from messaging.models.transitions import Transition, apply_transitions
from messaging.webhooks.events import EventRow, write_events
from rme.core import errors, ids
from rme.core.db import clock

_FROM = f"""
FROM {Delivery._meta.db_table} d JOIN {Message._meta.db_table} m ON m.id = d.message_id
WHERE m.organization_id = %s AND m.id = %s
"""
# Only scheduled deliveries are locked, so that no worker waits for a cancel. The second of two
# concurrent cancels waits here, and finds the deliveries no longer scheduled.
_SCHEDULED = f"""
SELECT d.id, d.channel {_FROM} AND d.status = 'SCHEDULED'
ORDER BY d.id FOR UPDATE OF d
"""
_STATUSES = f"SELECT DISTINCT d.status {_FROM}"


def cancel(organization_id: str, message_id: str) -> UUID:
    """Cancel the scheduled deliveries of a message, and return its id.

    A message that was cancelled before is no error. Raises NotFound, and NotCancellable for a
    message without a scheduled delivery.
    """
    found = ids.parse(message_id)
    if found is None:
        raise errors.NotFound("There is no such message.")
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_SCHEDULED, [organization_id, found])
        rows = cursor.fetchall()
        if not rows:  # read after the lock, so that another cancel's result is seen
            cursor.execute(_STATUSES, [organization_id, found])
            _require_cancelled(message_id, {status for (status,) in cursor.fetchall()})
            return found
        now = clock.now()
        cancelled = apply_transitions(
            [
                Transition(id=delivery_id, status=Status.CANCELLED, due_at=None)
                for delivery_id, _ in rows
            ]
        )
        write_events(
            [
                EventRow(
                    organization_id, found, delivery_id, EventType.CANCELLED, now, channel=channel
                )
                for delivery_id, channel in rows
                if delivery_id in cancelled
            ]
        )
    return found


def _require_cancelled(message_id: str, statuses: set[str]) -> None:
    """Raise unless a message without a scheduled delivery has been cancelled."""
    if not statuses:
        raise errors.NotFound("There is no such message.")
    if Status.CANCELLED not in statuses:
        raise errors.NotCancellable(message_id=message_id)
