"""Webhook deliveries beyond the regular ones: test events, and replays of past events."""

from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Now

from messaging.domain.webhooks import TEST_EVENT
from messaging.models import WebhookDelivery, WebhookEndpoint
from messaging.store.webhooks import replays as store
from messaging.store.webhooks.replays import REPLAY_LIMIT
from messaging.webhooks import delivery_log
from messaging.webhooks.delivery_log import WebhookDeliveryFilter
from rme.core import ids

__all__ = ["REPLAY_LIMIT", "TEST_EVENT"]
CHOSEN_LIMIT = 10_000
"""The most deliveries that a filter chooses to be sent again."""


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


def count_chosen(endpoint: WebhookEndpoint, query: WebhookDeliveryFilter) -> int:
    """Count the deliveries that `replay_chosen` would queue."""
    return delivery_log.matching(endpoint.pk, query, CHOSEN_LIMIT).count()


def replay_chosen(endpoint: WebhookEndpoint, query: WebhookDeliveryFilter) -> int:
    """Queue the deliveries that a filter matches, the newest up to CHOSEN_LIMIT, whatever became
    of them; return how many there are. Those that wait for another try are due now.
    """
    return _queue(delivery_log.matching(endpoint.pk, query, CHOSEN_LIMIT))


def _queue(rows: QuerySet[WebhookDelivery]) -> int:
    return rows.update(
        status=WebhookDelivery.Status.PENDING, due_at=Now(), queued_at=Now(), tries=0
    )


def replay(endpoint: WebhookEndpoint, since: datetime, until: datetime) -> int:
    """Queue all events of a period for an endpoint, whether or not they were delivered before.

    An endpoint of TEST applications gets those of TEST messages.

    Of consent, suppressions and devices these are the events that were queued for it. Return how
    many deliveries are queued: of messages and of changes at most REPLAY_LIMIT, the earliest ones.
    """
    return store.replay(
        endpoint.organization_id, endpoint.pk, endpoint.types, (since, until), test=endpoint.test
    )
