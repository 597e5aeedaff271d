"""The dispatcher: sends due webhook deliveries to many endpoints side by side.

One worker at a time claims endpoints' queues, for some seconds. Requests that are still in flight
then are finished by a thread of the process, so that a slow endpoint delays neither the next
worker's run nor the next task of this process. The first request to an endpoint goes alone: an
endpoint that does not answer costs one request.
"""

import threading
from collections import deque
from time import monotonic
from typing import NamedTuple

import structlog
from django.conf import settings
from django.db import connection

from messaging.telemetry import spans, timings
from messaging.webhooks import endpoints, outbox, signatures
from messaging.webhooks.endpoint_queue import EndpointQueue, EndpointResponse
from messaging.webhooks.outbox import ClaimedEndpoint, DueWebhookDelivery
from rme import __version__
from rme.core.db import clock, locks
from rme.core.http.retry_after import retry_after
from rme.core.telemetry.tracing import Span
from rme.transport import (
    AddressPolicy,
    Failure,
    InvalidRequest,
    Reply,
    Request,
    RequestsInFlight,
    Transport,
)

log = structlog.get_logger(__name__)

RUN_SECONDS = 5.0
CLAIM_SECONDS = 0.25
"""Pause between two claims while requests are in flight and nothing was due."""
IN_FLIGHT_LIMIT = 300
"""The most requests in flight of a worker: endpoints that hang take one each."""
TIMEOUT = 15.0
"""Seconds an endpoint has to respond (the rules recommend 15 to 30)."""
RESPONSE_LIMIT = 64 * 1024
RESPONSE_STORED = 1000
"""How many characters of an answer are kept with its attempt."""
RETRY_AFTER_LIMIT = 3600.0


class DispatchedRequest(NamedTuple):
    """What a request in flight belongs to, and when it began (monotonic)."""

    queue: EndpointQueue
    delivery: DueWebhookDelivery
    began: float
    span: Span | None
    """Its span, where its message is traced."""


class Dispatcher:
    """Dispatches the queues of many endpoints side by side, over a transport of its own."""

    def __init__(self, transport: Transport) -> None:
        self.requests: RequestsInFlight[DispatchedRequest] = RequestsInFlight(transport)
        self.queues: set[EndpointQueue] = set()

    def run(self, until: float) -> bool:
        """Dispatch until nothing is due, or until a time (monotonic).

        Return whether no request is in flight any more.
        """
        claim_at = 0.0
        while monotonic() < until:
            if monotonic() >= claim_at and len(self.requests) < IN_FLIGHT_LIMIT:
                claimed = outbox.claim(IN_FLIGHT_LIMIT - len(self.requests))
                self.start(claimed)
                claim_at = monotonic() + (0.0 if claimed else CLAIM_SECONDS)
                if not self.queues and not claimed:
                    return True
            if self._step(max(0.0, min(until, claim_at) - monotonic())):
                claim_at = 0.0
        for queue in self.queues:
            queue.due.clear()  # these deliveries stay due
        return not self.queues

    def finish(self) -> None:
        """Wait for the requests in flight, at most as long as a request may take."""
        while self.queues:
            self._step(1.0)

    def close(self) -> None:
        """Close the connections."""
        self.requests.close()

    def start(self, claimed: list[ClaimedEndpoint]) -> None:
        """Start the first request to each endpoint."""
        for claim in claimed:
            queue = EndpointQueue(claim, deque(claim.due))
            self.queues.add(queue)
            self._send(queue)

    def _step(self, seconds: float) -> bool:
        """Process the responses that arrived; return whether a queue is finished."""
        for (queue, delivery, began, span), result in self.requests.step(seconds):
            response, took = _response(result), monotonic() - began
            queue.add_response(delivery, response, int(took * 1000))
            timings.WEBHOOK_SECONDS.observe(took, response.kind)
            if span:
                spans.end_webhook(span, response.status, is_ok=response.ok)
            self._send(queue)
        finished = [queue for queue in self.queues if queue.is_finished]
        outbox.record([queue.result() for queue in finished])
        self.queues.difference_update(finished)
        return bool(finished)

    def _send(self, queue: EndpointQueue) -> None:
        for delivery in queue.take():
            if delivery.body is None:
                queue.give_up(delivery)
                continue
            span = spans.begin_webhook(
                delivery.traceparent, queue.claim.endpoint.pk, delivery.event_id, delivery.tries
            )
            context = (("traceparent", span.traceparent),) if span else ()
            try:
                request = _request(queue.claim, delivery, delivery.body, context)
            except InvalidRequest:  # a URL that was written into the table by hand
                invalid = EndpointResponse(0, "not an address to call", "", 0.0)
                queue.add_response(delivery, invalid, 0)
            else:
                self.requests.add(DispatchedRequest(queue, delivery, monotonic(), span), request)


def _request(
    claim: ClaimedEndpoint,
    delivery: DueWebhookDelivery,
    body: bytes,
    context: tuple[tuple[str, str], ...],
) -> Request:
    webhook_id, now = str(delivery.event_id), int(clock.now().timestamp())
    keys = endpoints.signing_secrets(claim.endpoint)
    return Request(
        claim.endpoint.url,
        body,
        headers=(
            ("content-type", "application/json"),
            ("user-agent", f"rme/{__version__}"),
            ("webhook-id", webhook_id),
            ("webhook-timestamp", str(now)),
            ("webhook-signature", signatures.sign(keys, webhook_id, now, body)),
            *context,
        ),
        timeout=TIMEOUT,
        max_response=RESPONSE_LIMIT,
    )


def _response(result: Reply | Failure) -> EndpointResponse:
    """Read a response. A 2xx status counts even if the body was too long or was cut off."""
    if isinstance(result, Failure):
        ok = 200 <= result.status < 300
        return EndpointResponse(result.status, "" if ok else result.reason, "", 0.0)
    text = result.body[: 4 * RESPONSE_STORED].decode("utf-8", "replace").replace("\x00", "�")
    wait = min(retry_after(result) or 0.0, RETRY_AFTER_LIMIT)
    return EndpointResponse(result.status, "", text[:RESPONSE_STORED], wait)


def dispatch(seconds: float = RUN_SECONDS) -> None:
    """Send what is due, for some seconds. Return at once if another worker does."""
    with locks.alone("messaging.webhooks.dispatcher") as alone:
        if not alone:
            return
        policy = AddressPolicy(settings.OUTBOUND_OPEN_HOSTS)
        dispatcher = Dispatcher(Transport(policy, per_host=IN_FLIGHT_LIMIT))
        finished = True
        try:
            finished = dispatcher.run(monotonic() + seconds)
        finally:
            if finished:
                dispatcher.close()
    if not finished:
        threading.Thread(target=_finish, args=(dispatcher,), name="webhooks", daemon=True).start()


def _finish(dispatcher: Dispatcher) -> None:
    """Wait for slow endpoints. What is lost with the process is sent again after the lease."""
    try:
        dispatcher.finish()
    except Exception:  # a thread's error appears in no task's log
        log.exception("webhooks.requests_lost")
    finally:
        dispatcher.close()
        connection.close()
