"""Reading an endpoint's webhook deliveries, and deleting them when their time is over.

Pages are by keyset: event ids begin with the time, and an index has them by endpoint. Status and
type have no index, so a page with these filters scans a limited number of deliveries.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from messaging.domain.webhooks import GIVE_UP
from messaging.models import WebhookDelivery, WebhookEndpoint
from messaging.webhooks import endpoints
from rme.core import ids
from rme.core.db import keyset

DELIVERED_STORED, FAILED_STORED = timedelta(days=7), timedelta(days=30)
STORED = {
    WebhookDelivery.Status.PENDING: GIVE_UP,
    WebhookDelivery.Status.DELIVERED: DELIVERED_STORED,
    WebhookDelivery.Status.FAILED: FAILED_STORED,
}
"""How long a delivery stays as it is, by status."""
PURGE_BATCH = 1000
PURGE_SECONDS = 10.0


SCAN_LIMIT = 5_000
"""The most deliveries that a page with a filter without an index scans."""


@dataclass(frozen=True, slots=True)
class WebhookDeliveryFilter:
    """Which deliveries of an endpoint are meant. What is None or empty matches any."""

    status: str = ""
    type: str = ""
    webhook_id: UUID | None = None
    since: datetime | None = None
    """The time of the event, as that of `until`."""
    until: datetime | None = None


def find(
    endpoint_id: int, query: WebhookDeliveryFilter, *, limit: int, before: UUID | None = None
) -> keyset.Page[WebhookDelivery]:
    """Return a page of an endpoint's deliveries, newest event first: one query, two with a filter
    without an index.
    """
    rows, condition = _in_range(endpoint_id, query), _of_kind(query)
    scanned = SCAN_LIMIT if condition else None
    return keyset.page(rows, condition, limit=limit, before=before, key="event_id", scanned=scanned)


def matching(
    endpoint_id: int, query: WebhookDeliveryFilter, limit: int
) -> QuerySet[WebhookDelivery]:
    """Return the deliveries that a filter matches, the newest up to a limit."""
    rows = _in_range(endpoint_id, query).filter(_of_kind(query))
    newest = rows.order_by("-event_id").values("pk")[:limit]
    return WebhookDelivery.objects.filter(pk__in=newest)


def _in_range(endpoint_id: int, query: WebhookDeliveryFilter) -> QuerySet[WebhookDelivery]:
    rows = WebhookDelivery.objects.filter(endpoint_id=endpoint_id)
    if query.webhook_id:
        rows = rows.filter(event_id=query.webhook_id)
    if query.since:
        rows = rows.filter(event_id__gte=ids.at_least(query.since))
    if query.until:
        rows = rows.filter(event_id__lt=ids.at_least(query.until))
    return rows


def _of_kind(query: WebhookDeliveryFilter) -> Q:
    columns = {"status": query.status, "type": query.type}
    return Q(**{name: value for name, value in columns.items() if value})


def get(endpoint_id: int, delivery_id: int) -> WebhookDelivery | None:
    """Return a delivery of an endpoint."""
    return WebhookDelivery.objects.filter(endpoint_id=endpoint_id, pk=delivery_id).first()


def count_pending(endpoint: WebhookEndpoint, limit: int) -> int:
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
