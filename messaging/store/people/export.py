"""A person's messages, column by column, for their data export.

SQL, because rows are exported as they are stored (`to_jsonb`): a new column is included without a
change here. What other columns imply (`messaging.store.encodings`) is written out.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import orjson
from django.db import models

from messaging.models import (
    Attempt,
    Delivery,
    Event,
    Message,
    MessageContent,
    WebhookDelivery,
    WebhookEndpoint,
)
from messaging.store import encodings, event_view, lookups
from rme.core.db import sql

_MESSAGE, _CONTENT, _DELIVERY, _ATTEMPT = (
    model._meta.db_table for model in (Message, MessageContent, Delivery, Attempt)
)
_EVENTS = event_view.select(
    "stored.message_id = t.message_id AND stored.delivery_id = t.id",
    "accepted.id = t.id",
    "sent.delivery_id = t.id",
)
_WEBHOOK, _ENDPOINT = WebhookDelivery._meta.db_table, WebhookEndpoint._meta.db_table
_PROVIDER_ID = encodings.provider_id_of_attempt("x")
# Plan: delivery_by_contact in all partitions, then what belongs to each delivery, by its keys.
# Run by: messages, for consent.data_export
MESSAGES = f"""
SELECT to_jsonb(m) - 'organization_id' || jsonb_build_object(
  'delivery', to_jsonb(t) - 'organization_id',
  'content', CASE WHEN c.body ? 'recipients' THEN jsonb_set(c.body, '{{recipients}}',
      jsonb_strip_nulls(jsonb_build_object(t.id, c.body #> ARRAY['recipients', t.id::text])))
    ELSE c.body END,
  'attempts', (SELECT coalesce(jsonb_agg(to_jsonb(x) - 'organization_id' || jsonb_build_object(
      'message_id', t.message_id, 'provider_id', {_PROVIDER_ID}) ORDER BY x.id), '[]')
    FROM {_ATTEMPT} x WHERE x.delivery_id = t.id),
  'events', (SELECT coalesce(jsonb_agg(to_jsonb(x) - 'organization_id' ORDER BY x.id), '[]')
    FROM {_EVENTS} x),
  'webhook_deliveries', (
    SELECT coalesce(jsonb_agg(to_jsonb(n) - 'organization_id' ORDER BY n.id), '[]')
    FROM {_EVENTS} x JOIN {_ENDPOINT} w ON w.organization_id = t.organization_id
    JOIN {_WEBHOOK} n ON n.endpoint_id = w.id AND n.event_id = x.id))
FROM {_DELIVERY} t JOIN {_MESSAGE} m ON m.id = t.message_id
LEFT JOIN {_CONTENT} c ON c.id = t.message_id
WHERE t.organization_id = %(organization)s AND {lookups.is_to_contact("t", "%(contact)s")}
ORDER BY t.message_id
"""


def messages(organization_id: str, contact_id: str) -> list[str]:
    """Return a person's messages in PostgreSQL, each as JSON."""
    values = {"organization": organization_id, "contact": contact_id}
    return [record for (record,) in sql.fetch(MESSAGES, values)]


def of_rows(
    message: Message,
    deliveries: Sequence[Delivery],
    attempts: Sequence[Attempt],
    events: Sequence[Event],
    contact_id: str,
) -> dict[str, Any]:
    """Return a message that is not in PostgreSQL as `messages` returns one that is."""
    delivery = next(row for row in deliveries if row.contact_id == contact_id)
    history = event_view.of_rows(deliveries, attempts, events)
    return {
        **_columns(message),
        "delivery": _columns(delivery),
        "content": None,
        "attempts": [
            {
                **_columns(row),
                "message_id": str(delivery.message_id),
                "provider_id": encodings.provider_id_of(row),
            }
            for row in attempts
            if row.delivery_id == delivery.pk
        ],
        "events": [
            _columns(row)
            for row in sorted(history, key=attrgetter("pk"))
            if row.delivery_id == delivery.pk
        ],
        "webhook_deliveries": [],
    }


def _columns(row: models.Model) -> dict[str, Any]:
    names = [
        column.attname
        for column in row._meta.concrete_fields
        if column.attname != "organization_id"
    ]
    columns: dict[str, Any] = orjson.loads(
        orjson.dumps({name: row.__dict__[name] for name in names})
    )
    return columns
