"""An endpoint's claimed queue while it is dispatched: what to send next, retries and backoff.

It makes no requests; its clock may read the database time.
Rules: https://github.com/standard-webhooks/standard-webhooks
"""

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import monotonic

from messaging.domain.webhooks import (
    AttemptEntry,
    DeliveryResult,
    DueWebhookDelivery,
    EndpointResult,
)
from messaging.models import WebhookDelivery
from messaging.webhooks.outbox import ClaimedEndpoint
from rme.core.db import clock

ENDPOINT_LIMIT = 8
"""The most requests in flight to one endpoint."""
ATTEMPTS_STORED = 10

MINUTE, HOUR = 60.0, 3600.0
SCHEDULE = (5.0, 5 * MINUTE, 30 * MINUTE, *(hours * HOUR for hours in (2, 5, 10, 14, 20, 24)))
"""Seconds between the attempts of a delivery, as in the rules' example: a little over 3 days."""
JITTER = 0.1
BACKOFF_LIMIT = 30 * MINUTE
"""An endpoint's queue waits 1 s after a failure, twice as long after the next, up to this."""
GONE = 410
"""The status by which an endpoint says that it wants no more events."""


@dataclass(frozen=True, slots=True)
class EndpointResponse:
    """The response to one request; status 0 if there was none.

    `error` is the transport's failure, `text` the beginning of the body, and `retry_after` the
    seconds that the endpoint asked to wait.
    """

    status: int
    error: str
    text: str
    retry_after: float

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def kind(self) -> str:
        """Return its kind for /metrics: `ok`, a class of status, or `none` if there was none."""
        if self.ok:
            return "ok"
        return f"{self.status // 100}xx" if 100 <= self.status < 600 else "none"


@dataclass(slots=True, eq=False)
class EndpointQueue:
    """A claimed endpoint with its due deliveries, the requests in flight, and their results.

    `results` are those that are not recorded yet. They count as in flight, so that a worker that
    dies leaves no more than ENDPOINT_LIMIT deliveries of an endpoint that are sent again.
    """

    claim: ClaimedEndpoint
    due: deque[DueWebhookDelivery]
    in_flight: int = 0
    results: list[DeliveryResult] = field(default_factory=list)
    last_response: EndpointResponse | None = None
    succeeded: bool = False
    gone: bool = False

    @property
    def is_finished(self) -> bool:
        return not self.due and not self.in_flight

    def take(self) -> Iterator[DueWebhookDelivery]:
        """Return the deliveries to send now: a single one until the endpoint has accepted one.

        Once the lease has ended another worker may send them, so they are left to it.
        """
        if monotonic() >= self.claim.until:
            self.due.clear()
        limit = ENDPOINT_LIMIT if self.succeeded else 1
        while self.due and self.in_flight + len(self.results) < limit:
            self.in_flight += 1
            yield self.due.popleft()

    def add_response(
        self, delivery: DueWebhookDelivery, response: EndpointResponse, ms: int
    ) -> None:
        """Add the response to one delivery. After a failure the rest of the queue waits."""
        self.in_flight -= 1
        self.last_response = response
        attempt: AttemptEntry = {
            "at": clock.iso(clock.now()),
            "status": response.status or None,
            "ms": ms,
            "error": response.error or None,
            "answer": response.text or None,
        }
        attempts = [*delivery.attempts, attempt][-ATTEMPTS_STORED:]
        status, wait = WebhookDelivery.Status.DELIVERED, 0.0
        if response.ok:
            self.succeeded = True
        else:
            self.due.clear()
            self.gone = self.gone or response.status == GONE
            if delivery.is_last_attempt or delivery.tries >= len(SCHEDULE):
                status = WebhookDelivery.Status.FAILED
            else:
                status = WebhookDelivery.Status.PENDING
                wait = max(_jittered(SCHEDULE[delivery.tries]), response.retry_after)
        self.results.append(DeliveryResult(delivery.id, status, wait, attempts))

    def give_up(self, delivery: DueWebhookDelivery) -> None:
        """Fail a delivery whose event no longer exists."""
        self.in_flight -= 1
        failed = WebhookDelivery.Status.FAILED
        self.results.append(DeliveryResult(delivery.id, failed, 0.0, delivery.attempts))

    def take_results(self) -> list[DeliveryResult]:
        """Return the results that are not recorded yet, for the caller to record."""
        results, self.results = self.results, []
        return results

    def result(self) -> EndpointResult:
        """Return when the queue may be claimed again, and what the endpoint's state is."""
        last = self.last_response
        failed = last is not None and not last.ok
        earlier_failures = 0 if self.succeeded else self.claim.endpoint.failures
        failures = earlier_failures + 1 if failed else (0 if last else earlier_failures)
        wait = 0.0
        if failed and last:
            backoff = _jittered(min(2.0 ** min(failures - 1, 30), BACKOFF_LIMIT))
            wait = max(backoff, last.retry_after)
        return EndpointResult(
            self.claim.endpoint.pk, self.claim.fence, wait, failures, self.succeeded, self.gone
        )


def _jittered(seconds: float) -> float:
    return seconds * random.uniform(1 - JITTER, 1 + JITTER)
