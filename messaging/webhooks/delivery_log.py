"""Reading an endpoint's webhook deliveries, and deleting them when their time is over."""

from datetime import timedelta
from time import monotonic

from django.db import connection

from messaging.models import WebhookDelivery, WebhookEndpoint
from messaging.webhooks import endpoints
from messaging.webhooks.outbox import GIVE_UP

DELIVERED_STORED, FAILED_STORED = timedelta(days=7), timedelta(days=30)
PURGE_BATCH = 1000
PURGE_SECONDS = 10.0

_TABLE = WebhookDelivery._meta.db_table


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


# In batches, since a statement over millions of rows would hold locks for minutes.
_BATCH = f"""(SELECT id FROM {_TABLE}
  WHERE status = %s AND noted_at < statement_timestamp() - make_interval(secs => %s)
  LIMIT {PURGE_BATCH})"""
_GIVE_UP = f"UPDATE {_TABLE} SET status = 'FAILED', due_at = NULL WHERE id IN {_BATCH}"
_DELETE = f"DELETE FROM {_TABLE} WHERE id IN {_BATCH}"
_STEPS = (
    (_GIVE_UP, WebhookDelivery.Status.PENDING, GIVE_UP),
    (_DELETE, WebhookDelivery.Status.DELIVERED, DELIVERED_STORED),
    (_DELETE, WebhookDelivery.Status.FAILED, FAILED_STORED),
)


def purge() -> None:
    """Fail deliveries that are too old, and delete those that ended long ago."""
    until = monotonic() + PURGE_SECONDS
    with connection.cursor() as cursor:
        for statement, status, age in _STEPS:
            cursor.execute(statement, [status, age.total_seconds()])
            while cursor.rowcount == PURGE_BATCH and monotonic() < until:
                cursor.execute(statement, [status, age.total_seconds()])
    endpoints.delete_expired_secrets()
