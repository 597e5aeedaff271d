"""Telling endpoints what they would not be told by themselves: tests, and what was told before."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from messaging.models import Event, WebhookDelivery, WebhookEndpoint
from messaging.models.endpoints import ALL_EVENTS
from rme.core import ids
from rme.core.db import sql

REPLAY_LIMIT = 100_000
TEST_EVENT = "webhook.test"
_N, _E = WebhookDelivery._meta.db_table, Event._meta.db_table


def queue_test(endpoint: WebhookEndpoint) -> UUID:
    """Tell an endpoint of nothing in particular; gives the webhook-id."""
    identifier = ids.new_id()
    row = {
        "organization_id": endpoint.organization_id,
        "endpoint_id": endpoint.pk,
        "event_id": identifier,
        "type": TEST_EVENT,
        "data": {"endpoint": endpoint.description},
    }
    sql.insert({WebhookDelivery: [row]})
    return identifier


_AGAIN = "status = 'PENDING', due_at = statement_timestamp(), noted_at = statement_timestamp()"
_REPLAY = f"""
INSERT INTO {_N} AS n (organization_id, endpoint_id, event_id, type)
SELECT e.organization_id, %(endpoint)s, e.id, 'message.' || e.type FROM {_E} e
WHERE e.organization_id = %(organization)s AND e.id >= %(since)s AND e.id < %(until)s
  AND (%(types)s::text[] && ARRAY['{ALL_EVENTS}', 'message.' || e.type])
ORDER BY e.id LIMIT {REPLAY_LIMIT}
ON CONFLICT (endpoint_id, event_id) DO UPDATE SET {_AGAIN}, tries = 0 WHERE n.status <> 'PENDING'
"""


def replay_failed(endpoint: WebhookEndpoint) -> int:
    """Tell again what was given up; gives how many notices."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {_N} SET {_AGAIN}, tries = 0 WHERE endpoint_id = %s AND status = 'FAILED'",
            [endpoint.pk],
        )
        count: int = cursor.rowcount
    return count


def replay(endpoint: WebhookEndpoint, since: datetime, until: datetime) -> int:
    """Tell of all events of a time again, also of those that were told, or never noted.

    Gives how many notices; at most REPLAY_LIMIT, the first of them.
    """
    parameters: dict[str, Any] = {
        "endpoint": endpoint.pk,
        "organization": endpoint.organization_id,
        "since": ids.at_least(since),
        "until": ids.at_least(until),
        "types": endpoint.types,
    }
    with connection.cursor() as cursor:
        cursor.execute(_REPLAY, parameters)
        count: int = cursor.rowcount
    return count
