"""Webhook deliveries beyond the regular ones: test events, and replays of past events."""

from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from messaging.models import WebhookDelivery, WebhookEndpoint, derived_events
from messaging.models.endpoints import ALL_EVENTS
from messaging.webhooks import delivery_log
from messaging.webhooks.delivery_log import WebhookDeliveryFilter
from rme.core import ids

REPLAY_LIMIT = 100_000
CHOSEN_LIMIT = 10_000
"""The most deliveries that a filter chooses to be sent again."""
TEST_EVENT = "webhook.test"
_W = WebhookDelivery._meta.db_table
_OF_PERIOD = (
    "{0}.organization_id = %(organization)s AND {0}.id >= %(since)s AND {0}.id < %(until)s".format
)
_EVENTS = derived_events.select(*map(_OF_PERIOD, ("stored", "accepted", "sent")))


def queue_test(endpoint: WebhookEndpoint) -> UUID:
    """Queue a test event for an endpoint; return its webhook-id."""
    identifier = ids.new_id()
    WebhookDelivery.objects.create(
        organization_id=endpoint.organization_id,
        endpoint_id=endpoint.pk,
        event_id=identifier,
        type=TEST_EVENT,
        data={"endpoint": endpoint.description},
    )
    return identifier


def replay_failed(endpoint: WebhookEndpoint) -> int:
    """Queue the failed deliveries of an endpoint again; return how many there are."""
    failed = WebhookDelivery.objects.filter(
        endpoint_id=endpoint.pk, status=WebhookDelivery.Status.FAILED
    )
    return _queue(failed)


def count_chosen(endpoint: WebhookEndpoint, wanted: WebhookDeliveryFilter) -> int:
    """Count the deliveries that `replay_chosen` would queue."""
    return delivery_log.matching(endpoint.pk, wanted, CHOSEN_LIMIT).count()


def replay_chosen(endpoint: WebhookEndpoint, wanted: WebhookDeliveryFilter) -> int:
    """Queue the deliveries that a filter matches, the newest up to CHOSEN_LIMIT, whatever became
    of them; return how many there are. Those that wait for another try are due now.
    """
    return _queue(delivery_log.matching(endpoint.pk, wanted, CHOSEN_LIMIT))


def _queue(rows: QuerySet[WebhookDelivery]) -> int:
    return rows.update(
        status=WebhookDelivery.Status.PENDING, due_at=Now(), queued_at=Now(), tries=0
    )


# One statement inserts and revives: the ORM cannot select into an insert. Changes are in no table
# of events: those that were queued for the endpoint are sent again.
_REPLAY = f"""
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
SELECT e.organization_id, %(endpoint)s, e.id, 'message.' || e.type FROM {_EVENTS} e
WHERE %(types)s::text[] && ARRAY['{ALL_EVENTS}', 'message.' || e.type]
ORDER BY e.id LIMIT {REPLAY_LIMIT}
ON CONFLICT (endpoint_id, event_id) DO UPDATE SET status = 'PENDING', tries = 0,
  due_at = statement_timestamp(), noted_at = statement_timestamp()
WHERE n.status <> 'PENDING' RETURNING n.id
)
SELECT (SELECT count(*) FROM changes) + (SELECT count(*) FROM messages)
"""


def replay(endpoint: WebhookEndpoint, since: datetime, until: datetime) -> int:
    """Queue all events of a period for an endpoint, whether or not they were delivered before.

    Of consent, suppressions and devices these are the events that were queued for it. Return how
    many deliveries are queued: of messages and of changes at most REPLAY_LIMIT, the earliest ones.
    """
    parameters: dict[str, str | int | UUID | list[str]] = {
        "endpoint": endpoint.pk,
        "organization": endpoint.organization_id,
        "since": ids.at_least(since),
        "until": ids.at_least(until),
        "types": endpoint.types,
    }
    with connection.cursor() as cursor:
        cursor.execute(_REPLAY, parameters)
        (count,) = cursor.fetchone()
    return int(count)
