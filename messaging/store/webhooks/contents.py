"""The event of a webhook delivery. It has no copy: its parts are read where they are stored."""

from collections.abc import Sequence
from typing import Any

import orjson

from messaging.domain.statuses import EventType
from messaging.domain.webhooks import WebhookEvent
from messaging.models import Delivery, Message, WebhookDelivery
from messaging.store import event_view
from rme.core import ids
from rme.core.db import sql

_EVENT = event_view.select(
    "stored.id = n.event_id",
    f"n.type = 'message.{EventType.ACCEPTED}' AND {sql.by_key('accepted.id', 'n.event_id')}",
    f"n.type = 'message.{EventType.SENT}' AND {sql.by_key('sent.id', 'n.event_id')}",
)
COLUMNS = """n.event_id, n.type, coalesce(e.at, n.noted_at), n.data, e.id IS NOT NULL, m.id,
  d.contact_id, e.channel, d.category, d.status, e.provider, m.test, m.metadata, e.detail"""
"""What a statement selects for `event_of`."""
JOINS = f"""
LEFT JOIN LATERAL {_EVENT} e ON e.organization_id = n.organization_id
LEFT JOIN {Delivery._meta.db_table} d ON {sql.by_key("d.id", "e.delivery_id")}
LEFT JOIN {Message._meta.db_table} m
  ON {sql.by_key("m.id", "e.message_id")} AND m.organization_id = e.organization_id
"""
"""From a webhook delivery `n` to its event, its recipient and its message. Plan: primary keys."""
# Plan: primary keys.
# Run by: read, for console.developers.webhook_pages
READ_ONE = f"""
SELECT {COLUMNS} FROM {WebhookDelivery._meta.db_table} n {JOINS} WHERE n.id = %(delivery)s
"""


def event_of(columns: Sequence[Any]) -> WebhookEvent:
    """Return the event of the columns of a row."""
    event_id, kind, at, own_data, has_event, message_id, contact_id, *facts = columns
    channel, category, status, provider, test, metadata, detail = facts
    if own_data is not None:  # `noted_at` is the time of a replay
        return WebhookEvent(event_id, kind, ids.moment(event_id), orjson.loads(own_data))
    data = None
    if has_event and message_id is not None and contact_id is not None:
        data = {
            "messageId": str(message_id),
            "contactId": contact_id,
            "channel": channel,
            "category": category,
            "status": status,
            "provider": provider,
            "test": test,
            "metadata": orjson.loads(metadata) if metadata else None,
            "detail": orjson.loads(detail) if detail else None,
        }
    return WebhookEvent(event_id, kind, at, data, message_id, is_live_message=not test)


def read(delivery_id: int) -> WebhookEvent | None:
    """Return the event of a delivery, as a request would have it now. For the console."""
    rows = sql.fetch(READ_ONE, {"delivery": delivery_id})
    return event_of(rows[0]) if rows else None
