"""The queue of webhook deliveries: a row for each event and each endpoint that subscribes to it."""

from collections.abc import Sequence
from functools import lru_cache

from messaging.models import WebhookDelivery, WebhookEndpoint
from messaging.models.endpoints import ALL_EVENTS
from rme.core.db import sql

_N, _W = WebhookDelivery._meta.db_table, WebhookEndpoint._meta.db_table


# Plan: endpoints by their organization, which are few.
# Run by: queueing_step, for store.events and webhooks.changes
@lru_cache(maxsize=16)
def _queueing(columns: tuple[str, ...], condition: str) -> str:
    names, values = ", ".join(columns), ", ".join(f"queued.{column}" for column in columns)
    return f"""INSERT INTO {_N} (endpoint_id, {names})
WITH enabled AS MATERIALIZED (
  SELECT id, organization_id, types, test FROM {_W}
  WHERE organization_id = ANY(%(organizations)s::text[]) AND enabled
)
SELECT enabled.id, {values}
FROM json_populate_recordset(
  NULL::{_N}, CASE WHEN EXISTS (SELECT FROM enabled) THEN %(events)s::json ELSE '[]' END
) WITH ORDINALITY queued
JOIN enabled ON enabled.organization_id = queued.organization_id AND enabled.types && CASE
  WHEN starts_with(queued.type, 'message.') THEN ARRAY[queued.type, '{ALL_EVENTS}']
  ELSE ARRAY[queued.type]
END
WHERE {condition} ORDER BY queued.ordinality, enabled.id"""


def queueing_step(events: Sequence[sql.Row], condition: str = "true") -> sql.Step | None:
    """Return the step that queues events for the enabled endpoints that subscribe to their types.

    `events` are rows of `WebhookDelivery` without an endpoint, all with the same columns. Only rows
    that meet `condition` are queued: it is SQL about a row `queued` and an endpoint `enabled`.
    The step itself reads the subscriptions, so no process misses an event of a new endpoint.
    Without an enabled endpoint the database does not even parse the events.
    """
    if not events:
        return None
    organization_ids = {event["organization_id"] for event in events}
    text = _queueing(tuple(events[0]), condition)
    values = {"organizations": sql.array(organization_ids), "events": sql.as_json(events)}
    return sql.bind(text, values)
