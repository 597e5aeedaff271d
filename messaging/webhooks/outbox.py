"""The outbox: webhook deliveries that are due, under a claim, and their results."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

import orjson
import structlog

from messaging.domain.webhooks import (
    DeliveryResult,
    DueWebhookDelivery,
    EndpointResult,
    WebhookEvent,
)
from messaging.models import WebhookEndpoint
from messaging.store.webhooks import claims
from rme.core.db import clock

log = structlog.get_logger(__name__)

LEASE_SECONDS = 60.0
"""After this a worker is thought dead; a request and the run that it is made in take less."""


@dataclass(frozen=True, slots=True)
class ClaimedEndpoint:
    """An endpoint whose queue is claimed until the lease ends, and the first of its deliveries."""

    endpoint: WebhookEndpoint
    fence: int
    due: Sequence[DueWebhookDelivery]
    until: float
    """When the lease ends, or a little before (monotonic)."""


def claim(limit: int) -> list[ClaimedEndpoint]:
    """Claim the queues of at most `limit` endpoints, in three statements."""
    until = monotonic() + LEASE_SECONDS
    queues = claims.claim(limit, LEASE_SECONDS)
    endpoints = (
        WebhookEndpoint.objects.in_bulk({queue.endpoint_id for queue in queues}) if queues else {}
    )
    return [
        ClaimedEndpoint(endpoints[queue.endpoint_id], queue.fence, queue.due, until)
        for queue in queues
        if queue.endpoint_id in endpoints
    ]


def payload_of(event: WebhookEvent, *, test: bool) -> bytes | None:
    """Return the payload as JSON; None if the event or its message no longer exists.

    `test`: for an endpoint of TEST applications. The release before queued live messages for them.
    """
    if event.data is None or (test and event.is_live_message):
        return None
    timestamp = clock.iso(event.at)
    return orjson.dumps({"type": event.type, "timestamp": timestamp, "data": event.data})


def record(delivered: Sequence[DeliveryResult], released: Sequence[EndpointResult] = ()) -> None:
    """Record results of deliveries, and release endpoints, by one statement."""
    if not delivered and not released:
        return
    for endpoint in claims.record(delivered, released):
        if not endpoint.enabled:
            log.warning(
                "endpoint.disabled",
                endpoint_id=endpoint.id,
                organization_id=endpoint.organization_id,
            )
