"""Reading an endpoint's webhook deliveries, and deleting them when their time is over."""

from datetime import timedelta
from time import monotonic

from django.db.models.functions import Now

from messaging.models import WebhookDelivery, WebhookEndpoint
from messaging.webhooks import endpoints
from messaging.webhooks.outbox import GIVE_UP

DELIVERED_STORED, FAILED_STORED = timedelta(days=7), timedelta(days=30)
STORED = {
    WebhookDelivery.Status.PENDING: GIVE_UP,
    WebhookDelivery.Status.DELIVERED: DELIVERED_STORED,
    WebhookDelivery.Status.FAILED: FAILED_STORED,
}
"""How long a delivery stays as it is, by status."""
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
    for status, age in STORED.items():
        while _purge_batch(status, age) == PURGE_BATCH and monotonic() < until:
            pass
    endpoints.delete_expired_secrets()


def _purge_batch(status: str, age: timedelta) -> int:
    """Purge a batch, and return its size: one statement over millions would hold locks."""
    old = WebhookDelivery.objects.filter(status=status, queued_at__lt=Now() - age)
    batch = WebhookDelivery.objects.filter(pk__in=old.values("pk")[:PURGE_BATCH])
    if status == WebhookDelivery.Status.PENDING:
        return batch.update(status=WebhookDelivery.Status.FAILED, due_at=None)
    return batch.delete()[0]
