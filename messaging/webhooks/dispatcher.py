"""The dispatcher: sends due webhook deliveries to many endpoints side by side.

Any number of workers dispatch side by side, each for some seconds: each claims a few endpoints'
queues at a time, and an endpoint's queue is one worker's until it is released. A worker that is
busy leaves the other endpoints to others; one that only waits for responses claims more, so that
slow endpoints delay no others. Requests that are still in flight at the end of a run are finished
by a thread of the process. The first request to an endpoint goes alone: an endpoint that does not
answer costs one request.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection
from datetime import datetime
from time import monotonic, thread_time
from typing import NamedTuple

import structlog
from django.conf import settings
from django.db import connection

from messaging.domain.webhooks import DueWebhookDelivery
from messaging.telemetry import spans, timings
from messaging.webhooks import endpoints, outbox, signatures
from messaging.webhooks.endpoint_queue import EndpointQueue, EndpointResponse
from messaging.webhooks.outbox import ClaimedEndpoint
from rme import __version__
from rme.core.db import clock
from rme.core.db.encrypted_fields import UnreadableSecret
from rme.core.process.threads import end_process
from rme.core.telemetry.spans import Span
from rme.transport import RequestsInFlight, Transport
from rme.transport.addresses import AddressPolicy
from rme.transport.messages import Failure, InvalidRequest, Reply, Request, retry_after

log = structlog.get_logger(__name__)

RUN_SECONDS = 5.0
CLAIM_SECONDS = 0.25
"""Pause between two claims while requests are in flight and nothing was due."""
SHARE = 8
"""The most endpoints of a claim. A worker that is busy holds no more at a time."""
IDLE_SHARE = 0.5
"""A worker that waits for this share of its time has room for more endpoints."""
STEP_SECONDS = 0.05
"""How long a worker with room waits for responses before it claims again."""
IN_FLIGHT_LIMIT = 300
"""The most requests in flight of a worker: endpoints that hang take one each."""
TIMEOUT = 15.0
"""Seconds an endpoint has to respond (the rules recommend 15 to 30)."""
RESPONSE_LIMIT = 64 * 1024
RESPONSE_STORED = 1000
"""How many characters of an answer are kept with its attempt."""
RETRY_AFTER_LIMIT = 3600.0
INVALID_URL = "not an address to call"
"""A URL that somebody wrote into the table by hand."""
UNDECRYPTED = "the signing secret can't be decrypted; replace it"


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
        self.waited = 0.0
        """How long it has waited for responses since the last claim."""

    def run(self, until: float, wake: Callable[[], object] = lambda: None) -> bool:
        """Dispatch until nothing is due, or until a time (monotonic).

        Call `wake` once there is more than this worker claims, and if it has not finished. Return
        whether no request is in flight any more.
        """
        claimed_at = claim_at = 0.0
        has_woken = False
        while (now := monotonic()) < until:
            if now >= claim_at and (room := self.room(now - claimed_at)):
                claimed = outbox.claim(room)
                self.start(claimed)
                if len(claimed) == SHARE and not has_woken:
                    wake()
                    has_woken = True
                if not self.queues and not claimed:
                    return True
                claimed_at, self.waited = monotonic(), 0.0
                claim_at = claimed_at + (0.0 if claimed else CLAIM_SECONDS)
            pause = max(STEP_SECONDS, claim_at - monotonic())
            if self._step(max(0.0, min(pause, until - monotonic()))):
                claim_at = 0.0
        for queue in self.queues:
            queue.due.clear()  # these deliveries stay due
        wake()
        return not self.queues

    def room(self, seconds: float) -> int:
        """Return how many endpoints to claim, `seconds` after the last claim."""
        if len(self.queues) >= SHARE and self.waited < IDLE_SHARE * seconds:
            return 0
        return max(0, min(SHARE, IN_FLIGHT_LIMIT - len(self.requests)))

    def finish(self) -> None:
        """Wait for the requests in flight, at most as long as a request may take."""
        while self.queues:
            self._step(1.0)

    def close(self) -> None:
        """Close the connections."""
        self.requests.close()

    def start(self, claimed: list[ClaimedEndpoint]) -> None:
        """Start the first request to each endpoint."""
        queues = [EndpointQueue(claim, deque(claim.due)) for claim in claimed]
        self.queues.update(queues)
        for queue in queues:
            self._send(queue)
        self._record(queues)

    def _step(self, seconds: float) -> bool:
        """Process the responses that arrived; return whether a queue is finished."""
        started = monotonic() - thread_time()
        responses = self.requests.step(seconds)
        self.waited += monotonic() - thread_time() - started
        for (queue, delivery, began, span), result in responses:
            response, took = _response(result), monotonic() - began
            queue.add_response(delivery, response, int(took * 1000))
            timings.WEBHOOK_SECONDS.observe(took, response.kind)
            if span:
                spans.end_webhook(span, response.status, is_ok=response.ok)
        return self._record(dict.fromkeys(queue for (queue, *_), _ in responses))

    def _record(self, queues: Collection[EndpointQueue]) -> bool:
        """Record results, release the queues that are finished, and send what follows in others.

        An event may have a result at once, without a request. Return whether a queue is
        finished.
        """
        count = len(self.queues)
        while changed := [queue for queue in queues if queue.results]:
            results = [result for queue in changed for result in queue.take_results()]
            finished = [queue for queue in changed if queue.is_finished]
            outbox.record(results, [queue.result() for queue in finished])
            self.queues.difference_update(finished)
            for queue in changed:
                self._send(queue)
        return len(self.queues) < count

    def _send(self, queue: EndpointQueue) -> None:
        moment = clock.now()  # may ask the database, which may take as long as the lease
        for delivery in queue.take():
            body = outbox.payload_of(delivery.event, test=queue.claim.endpoint.test)
            if body is None:
                queue.give_up(delivery)
                continue
            span = spans.begin_webhook(
                delivery.traceparent, queue.claim.endpoint.pk, delivery.event.id, delivery.tries
            )
            context = (("traceparent", span.traceparent),) if span else ()
            try:
                request = _request(queue.claim, delivery, body, moment, context)
            except (InvalidRequest, UnreadableSecret) as error:
                reason = UNDECRYPTED if isinstance(error, UnreadableSecret) else INVALID_URL
                queue.add_response(delivery, EndpointResponse(0, reason, "", 0.0), 0)
                if span:
                    spans.end_webhook(span, 0, is_ok=False)
            else:
                self.requests.add(DispatchedRequest(queue, delivery, monotonic(), span), request)
        if queue.is_finished and not queue.results:  # its lease has ended
            self.queues.discard(queue)


def _request(
    claim: ClaimedEndpoint,
    delivery: DueWebhookDelivery,
    body: bytes,
    moment: datetime,
    context: tuple[tuple[str, str], ...],
) -> Request:
    webhook_id, now = str(delivery.event.id), int(moment.timestamp())
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


def dispatch(wake: Callable[[], object] = lambda: None, seconds: float = RUN_SECONDS) -> None:
    """Send what is due, for some seconds, beside any number of other workers.

    Call `wake` when another worker has work, too.
    """
    policy = AddressPolicy(settings.OUTBOUND_OPEN_HOSTS)
    dispatcher = Dispatcher(Transport(policy, per_host=IN_FLIGHT_LIMIT))
    finished = True
    try:
        finished = dispatcher.run(monotonic() + seconds, wake)
    finally:
        if finished:
            dispatcher.close()
    if not finished:
        threading.Thread(target=_finish, args=(dispatcher,), name="webhooks", daemon=True).start()


def _finish(dispatcher: Dispatcher) -> None:
    """Wait for slow endpoints. What is lost with the process is sent again after the lease."""
    try:
        dispatcher.finish()
    except MemoryError as error:
        end_process("a webhook had no memory", error=str(error))
    except Exception:  # a thread's error appears in no task's log
        log.exception("webhooks.requests_lost")
    finally:
        dispatcher.close()
        connection.close()
