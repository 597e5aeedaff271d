"""Past events, queued again for an endpoint.

The ORM cannot select into an insert. Changes are in no table of events: those that were queued for
the endpoint are queued again.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from messaging.domain.webhooks import TEST_EVENT
from messaging.models import Delivery, WebhookDelivery
from messaging.models.endpoints import ALL_EVENTS
from messaging.store import event_view
from rme.core import ids
from rme.core.db import sql

REPLAY_LIMIT = 100_000
_W = WebhookDelivery._meta.db_table
_OF_PERIOD = (
    "{0}.organization_id = %(organization)s AND {0}.id >= %(since)s AND {0}.id < %(until)s".format
)
_EVENTS = event_view.select(*map(_OF_PERIOD, ("stored", "accepted", "sent")))
_SUBSCRIBED = f"""%(types)s::text[] && ARRAY['{ALL_EVENTS}', 'message.' || e.type]
ORDER BY e.id LIMIT {REPLAY_LIMIT}"""


def _replay(messages: str) -> str:
    """Return the statement that queues the changes of a period, and messages' events."""
    return f"""
WITH changes AS (
UPDATE {_W} SET status = 'PENDING', tries = 0,
  due_at = statement_timestamp(), noted_at = statement_timestamp()
WHERE id = ANY(ARRAY(
  SELECT id FROM {_W} WHERE endpoint_id = %(endpoint)s
    AND event_id >= %(since)s AND event_id < %(until)s
    AND data IS NOT NULL AND type <> '{TEST_EVENT}' AND status <> 'PENDING'
  ORDER BY event_id LIMIT {REPLAY_LIMIT})) RETURNING id
), messages AS (
INSERT INTO {_W} AS n (organization_id, endpoint_id, event_id, type)
{messages}
ON CONFLICT (endpoint_id, event_id) DO UPDATE SET status = 'PENDING', tries = 0,
  due_at = statement_timestamp(), noted_at = statement_timestamp()
WHERE n.status <> 'PENDING' RETURNING n.id
)
SELECT (SELECT count(*) FROM changes) + (SELECT count(*) FROM messages)
"""


# Plan: notice_once, and ranges of the primary keys of events, deliveries and attempts.
# Run by: replay, for webhooks.replays
REPLAY = _replay(
    f"""SELECT e.organization_id, %(endpoint)s, e.id, 'message.' || e.type FROM {_EVENTS} e
WHERE {_SUBSCRIBED}"""
)
# Those of TEST messages are read by a statement of their own: docs/architecture.md, "Locks and
# pruning".
# Plan: ranges of the primary keys, then each delivery by its key.
# Run by: replay, for webhooks.replays
READ_TEST_EVENTS = f"""
SELECT e.id, 'message.' || e.type FROM {_EVENTS} e
JOIN {Delivery._meta.db_table} d ON {sql.by_key("d.id", "e.delivery_id")} AND d.test
WHERE {_SUBSCRIBED}"""
# Plan: notice_once.
# Run by: replay, for webhooks.replays
REPLAY_TEST = _replay(
    """SELECT %(organization)s, %(endpoint)s, e.id, e.type
FROM unnest(%(events)s::uuid[], %(event_types)s::text[]) e(id, type)"""
)


def replay(
    organization_id: str,
    endpoint_id: int,
    types: Sequence[str],
    period: tuple[datetime, datetime],
    *,
    test: bool,
) -> int:
    """Queue the events of a period for an endpoint, at most REPLAY_LIMIT of messages and of
    changes, the earliest ones; return how many are queued. `test`: those of TEST messages alone.
    """
    since, until = map(ids.at_least, period)
    values: dict[str, str | int | UUID | list[Any]] = {
        "endpoint": endpoint_id,
        "organization": organization_id,
        "since": since,
        "until": until,
        "types": list(types),
    }
    if test:
        rows = sql.fetch(READ_TEST_EVENTS, values)
        values["events"] = [event_id for event_id, _ in rows]
        values["event_types"] = [kind for _, kind in rows]
    ((count,),) = sql.fetch(REPLAY_TEST if test else REPLAY, values)
    return int(count)
