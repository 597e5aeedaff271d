"""Reading an endpoint's webhook deliveries, and deleting them when their time is over."""

from collections.abc import Callable
from datetime import timedelta
from time import monotonic

from django.db.models import QuerySet
from django.db.models.functions import Now

from messaging.models import WebhookDelivery, WebhookEndpoint
from messaging.webhooks import endpoints
from messaging.webhooks.outbox import GIVE_UP

DELIVERED_STORED, FAILED_STORED = timedelta(days=7), timedelta(days=30)
PURGE_BATCH = 1000
PURGE_SECONDS = 10.0


def latest_attempted(endpoint: WebhookEndpoint, limit: int = 20) -> list[WebhookDelivery]:
    """Return the deliveries to an endpoint that were attempted last, the latest first."""
    rows = WebhookDelivery.objects.filter(endpoint_id=endpoint.pk, tried_at__isnull=False)
    return list(rows.order_by("-tried_at", "-id")[:limit])


def count_pending(endpoint: WebhookEndpoint, limit: int = 1001) -> int:
    """Count the pending deliveries of an endpoint, up to a limit."""
    return WebhookDelivery.objects.filter(endpoint_id=endpoint.pk, due_at__isnull=False)[
        :limit
    ].count()


def delete_deliveries(endpoint_id: int) -> None:
    """Delete all deliveries of an endpoint."""
    WebhookDelivery.objects.filter(endpoint_id=endpoint_id).delete()


def purge() -> None:
    """Fail deliveries that are too old, and delete those that ended long ago."""
    until = monotonic() + PURGE_SECONDS
    status = WebhookDelivery.Status
    _in_batches(status.PENDING, GIVE_UP, until, _give_up)
    for ended, stored in ((status.DELIVERED, DELIVERED_STORED), (status.FAILED, FAILED_STORED)):
        _in_batches(ended, stored, until, _delete)
    endpoints.delete_expired_secrets()


Rows = QuerySet[WebhookDelivery]


def _in_batches(status: str, age: timedelta, until: float, change: Callable[[Rows], int]) -> None:
    """Change what is older, batch by batch: one statement over millions would hold locks."""
    rows = WebhookDelivery.objects.filter(status=status, queued_at__lt=Now() - age)
    batch = WebhookDelivery.objects.filter(pk__in=rows.values("pk")[:PURGE_BATCH])
    while change(batch) == PURGE_BATCH and monotonic() < until:
        pass


def _give_up(rows: Rows) -> int:
    return rows.update(status=WebhookDelivery.Status.FAILED, due_at=None)


def _delete(rows: Rows) -> int:
    return rows.delete()[0]
