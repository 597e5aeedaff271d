"""Cancelling a scheduled message. A cancel and the release of the same message never both win."""

from typing import Any
from uuid import UUID

from django.db import connection, transaction

from messaging.events import write_events
from messaging.models import Delivery, Message
from messaging.states import TRANSITIONS, EventType, Status
from rme.core import clock, errors, ids, sql
from rme.core.states import advance

_ROWS = f"""
SELECT d.id, d.message_id, d.status, d.channel FROM {Delivery._meta.db_table} d
JOIN {Message._meta.db_table} m ON m.id = d.message_id
WHERE m.organization_id = %s AND m.id = %s ORDER BY d.position
"""


def cancel(organization_id: str, message_id: str) -> UUID:
    """Cancel what is still scheduled of a message; again is no error.

    Raises NotFound, and NotCancellable where nothing is scheduled any more.
    """
    found = ids.parse(message_id)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_ROWS, [organization_id, found])
            rows = cursor.fetchall()
        if not rows or found is None:
            raise errors.NotFound("There is no such message.")
        now = clock.now()
        scheduled = [row for row in rows if row[2] == Status.SCHEDULED]
        moved = advance(
            Delivery,
            TRANSITIONS,
            [{"id": row[0], "status": Status.CANCELLED, "due_at": None} for row in scheduled],
        )
        if not moved and not any(row[2] == Status.CANCELLED for row in rows):
            raise errors.NotCancellable(message_id=message_id)
        write_events([_event(organization_id, row, now) for row in rows if row[0] in moved])
    return found


def _event(organization_id: str, row: tuple[Any, ...], now: Any) -> sql.Row:
    return {
        "id": ids.new_id(),
        "organization_id": organization_id,
        "message_id": row[1],
        "delivery_id": row[0],
        "type": EventType.CANCELLED,
        "at": now,
        "channel": row[3],
        "provider": None,
        "detail": None,
    }
