"""The payloads of webhook deliveries, which are read from their events when they are needed."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import orjson
from django.db import connection

from messaging.models import Delivery, Message, WebhookDelivery, derived_events
from messaging.models.statuses import EventType
from rme.core import ids
from rme.core.db import clock, sql

_N = WebhookDelivery._meta.db_table
_D, _M = (model._meta.db_table for model in (Delivery, Message))
_EVENT = derived_events.select(
    "stored.id = n.event_id",
    f"n.type = 'message.{EventType.ACCEPTED}' AND {sql.by_key('accepted.id', 'n.event_id')}",
    f"n.type = 'message.{EventType.SENT}' AND {sql.by_key('sent.id', 'n.event_id')}",
)
COLUMNS = """n.event_id, n.type, coalesce(e.at, n.noted_at), n.data, e.id, m.id, d.contact_id,
  e.channel, d.category, d.status, e.provider, m.test, m.metadata, e.detail"""
"""What a statement selects for `PayloadColumns`."""
JOINS = f"""
LEFT JOIN LATERAL {_EVENT} e ON e.organization_id = n.organization_id
LEFT JOIN {_D} d ON {sql.by_key("d.id", "e.delivery_id")}
LEFT JOIN {_M} m ON {sql.by_key("m.id", "e.message_id")} AND m.organization_id = e.organization_id
"""
"""From a webhook delivery `n` to its event, its recipient and its message."""
_READ = f"SELECT {COLUMNS} FROM {_N} n {JOINS} WHERE n.id = %s"


class PayloadColumns(NamedTuple):
    """A delivery, then its event, message and recipient, if they exist."""

    event_id: UUID
    type: str
    at: datetime
    data: str | None
    found_event_id: UUID | None
    message_id: UUID | None
    contact_id: str | None
    channel: str | None
    category: str | None
    status: str | None
    provider: str | None
    test: bool | None
    metadata: str | None
    detail: str | None


def build(row: PayloadColumns) -> bytes | None:
    """Return the payload as JSON; None if the event or its message no longer exists."""
    at = row.at
    if row.data is not None:
        data: object = orjson.loads(row.data)
        at = ids.moment(row.event_id)  # `noted_at` is the time of a replay
    elif row.found_event_id is None or row.message_id is None or row.contact_id is None:
        return None
    else:
        data = {
            "messageId": str(row.message_id),
            "contactId": row.contact_id,
            "channel": row.channel,
            "category": row.category,
            "status": row.status,
            "provider": row.provider,
            "test": row.test,
            "metadata": orjson.loads(row.metadata) if row.metadata else None,
            "detail": orjson.loads(row.detail) if row.detail else None,
        }
    return orjson.dumps({"type": row.type, "timestamp": clock.iso(at), "data": data})


class Payload(NamedTuple):
    """The payload of a delivery, and the message that it is about."""

    body: bytes | None
    """None if the event or its message no longer exists."""
    message_id: UUID | None


def read(delivery: WebhookDelivery) -> Payload:
    """Return the payload of a delivery as a request would have it now."""
    with connection.cursor() as cursor:
        cursor.execute(_READ, [delivery.pk])
        row = cursor.fetchone()
    columns = PayloadColumns(*row) if row else None
    return Payload(build(columns), columns.message_id) if columns else Payload(None, None)
