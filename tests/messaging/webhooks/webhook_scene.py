"""Webhook endpoints on loopback, and a worker that dispatches to them."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import orjson
from django.conf import settings
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now
from standardwebhooks.webhooks import Webhook

from messaging.models import WebhookDelivery, WebhookEndpoint
from messaging.webhooks import signatures
from messaging.webhooks.dispatcher import Dispatcher
from rme.tenants.models import Organization
from rme.transport import AddressPolicy, Transport
from tests.fakes.http1 import Http1Server, Seen, respond


class Receiver(Http1Server):
    """A receiver that answers with `statuses`, one by one, and then with 204."""

    def __init__(self, *statuses: int, headers: dict[str, str] | None = None, body: bytes = b""):
        super().__init__(self._answer)
        self.statuses = list(statuses)
        self.headers = headers
        self.body = body

    def _answer(self, connection: Any, seen: Seen) -> None:
        status = self.statuses.pop(0) if self.statuses else 204
        respond(connection, status, self.body if status != 204 else b"", self.headers)

    @property
    def received(self) -> list[tuple[str, str]]:
        """Return the webhook-ids and types received, in their order."""
        return [(str(s.header("webhook-id")), orjson.loads(s.body)["type"]) for s in self.seen]


class DueTime(NamedTuple):
    """The seconds from a dispatch until a delivery is due: measured after it, and before it."""

    from_end: float
    from_start: float

    def is_between(self, least: float, most: float) -> bool:
        """Return whether it is due so long after a moment of the dispatch."""
        return self.from_end <= most and self.from_start >= least


def endpoint(org: Organization, url: str, *types: str, **fields: Any) -> WebhookEndpoint:
    """Create an endpoint that subscribes to all types, or to some."""
    row = WebhookEndpoint.objects.create(
        organization=org,
        url=url,
        types=list(types) or ["message.*"],
        secret=fields.pop("secret", signatures.new_secret()),
        **fields,
    )
    row.refresh_from_db()
    return row


def dispatch_all(seconds: float = 20.0, transport: Transport | None = None) -> None:
    """Dispatch what is due, and wait for all responses."""
    policy = AddressPolicy(settings.OUTBOUND_OPEN_HOSTS)
    dispatcher = Dispatcher(transport or Transport(policy, per_host=300))
    try:
        dispatcher.run(time.monotonic() + seconds)
        dispatcher.finish()
    finally:
        dispatcher.close()


def pass_time(**by: float) -> None:
    """Move the times of endpoints and deliveries into the past."""
    ago = timedelta(**by)
    WebhookDelivery.objects.update(due_at=F("due_at") - ago, queued_at=F("queued_at") - ago)
    WebhookEndpoint.objects.update(
        free_at=F("free_at") - ago, failing_since=F("failing_since") - ago
    )


def waits() -> list[float | None]:
    """Return in how many seconds each delivery is due, in the order of their ids."""
    rows = WebhookDelivery.objects.order_by("id").annotate(wait=F("due_at") - Now())
    return [row.wait and round(row.wait.total_seconds(), 1) for row in rows]


def database_time() -> datetime:
    """Return the time by the clock that the outbox's statements read."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        ((moment,),) = cursor.fetchall()
    return moment


def dispatch_measured() -> list[DueTime]:
    """Dispatch all; return when each delivery is due, in the order of their ids."""
    before = database_time()
    dispatch_all()
    after = database_time()
    dues = WebhookDelivery.objects.order_by("id").values_list("due_at", flat=True)
    return [DueTime((due - after).total_seconds(), (due - before).total_seconds()) for due in dues]


def verified(seen: Seen, *secrets: str) -> list[Any]:
    """Return the body as the Standard Webhooks library reads it with each secret."""
    headers = {name.lower(): value for name, value in seen.headers}
    return [Webhook(secret).verify(seen.body, headers) for secret in secrets]


def end(status: str, *, days: int = 0) -> None:
    """Set all deliveries to a final status, queued some days ago."""
    WebhookDelivery.objects.update(
        status=status, due_at=None, tries=10, queued_at=datetime.now(UTC) - timedelta(days=days)
    )


def count(**by: Any) -> int:
    return WebhookDelivery.objects.filter(**by).count()
