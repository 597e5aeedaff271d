"""Telling endpoints of events: many side by side, none held up by another.

One worker at a time takes endpoints' queues, for some seconds. What is still under way then is
left to a thread of the process, so that a slow endpoint keeps neither the next worker's turn nor
this process's next task waiting. Each endpoint's turn begins with one request: where nobody
answers, that is all it costs.
"""

import random
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import monotonic

import structlog
from django.conf import settings
from django.db import connection

from messaging.models import WebhookDelivery
from messaging.webhooks import endpoints, outbox, signatures
from messaging.webhooks.outbox import ClaimedEndpoint, DeliveryResult, DueDelivery, EndpointResult
from rme import __version__
from rme.core.db import clock, locks
from rme.core.retry_after_header import retry_after
from rme.transport import AddressPolicy, Failure, InvalidRequest, Reply, Request, Transport
from rme.transport.in_flight import RequestsInFlight

log = structlog.get_logger(__name__)

TURN_SECONDS = 5.0
LOOK_SECONDS = 0.25
"""How often is looked for what is due, while something is under way."""
FLIGHT_LIMIT = 300
"""At most so many requests of a worker are under way: endpoints that hang take one each."""
ENDPOINT_LIMIT = 8
"""At most so many to one endpoint."""
TIMEOUT = 15.0
"""Seconds an endpoint has to answer (the rules recommend 15 to 30)."""
ANSWER_LIMIT = 64 * 1024
ANSWER_KEPT = 500
ATTEMPTS_KEPT = 10

MINUTE, HOUR = 60.0, 3600.0
SCHEDULE = (5.0, 5 * MINUTE, 30 * MINUTE, *(hours * HOUR for hours in (2, 5, 10, 14, 20, 24)))
"""Seconds between the tries of a notice, as the rules' example has them: a little over 3 days."""
JITTER = 0.1
BACKOFF_LIMIT = 30 * MINUTE
"""An endpoint's queue waits 1 s after a failure, twice as long after the next, up to this."""
RETRY_AFTER_LIMIT = HOUR
GONE = 410
"""The status by which an endpoint says that it wants nothing more."""


@dataclass(frozen=True, slots=True)
class EndpointResponse:
    """What came of one request."""

    status: int
    error: str
    text: str
    wait: float
    """Seconds that the endpoint asked for."""

    @property
    def good(self) -> bool:
        return 200 <= self.status < 300


def _answer(result: Reply | Failure) -> EndpointResponse:
    """Read an answer. A good status counts, also where the rest was too long or never came."""
    if isinstance(result, Failure):
        good = 200 <= result.status < 300
        return EndpointResponse(result.status, "" if good else result.reason, "", 0.0)
    text = result.body[: 4 * ANSWER_KEPT].decode("utf-8", "replace").replace("\x00", "�")
    wait = min(retry_after(result) or 0.0, RETRY_AFTER_LIMIT)
    return EndpointResponse(result.status, "", text[:ANSWER_KEPT], wait)


@dataclass(slots=True, eq=False)
class EndpointQueue:
    """An endpoint's queue in hand: what is to be told, what is under way, and what came of it."""

    claim: ClaimedEndpoint
    line: deque[DueDelivery]
    under_way: int = 0
    told: list[DeliveryResult] = field(default_factory=list)
    last: EndpointResponse | None = None
    succeeded: bool = False
    gone: bool = False

    @property
    def ended(self) -> bool:
        return not self.line and not self.under_way

    def take(self) -> Iterator[DueDelivery]:
        """Take what may go now: one, and more only once the endpoint has taken one."""
        while self.line and self.under_way < (ENDPOINT_LIMIT if self.succeeded else 1):
            self.under_way += 1
            yield self.line.popleft()

    def hear(self, due: DueDelivery, answer: EndpointResponse, ms: int) -> None:
        """Note what came of one; after a failure the rest of the queue waits."""
        self.under_way -= 1
        self.last = answer
        attempt = {
            "at": clock.iso(clock.now()),
            "status": answer.status or None,
            "ms": ms,
            "error": answer.error or None,
            "answer": None if answer.good else answer.text or None,
        }
        attempts = [*due.attempts, attempt][-ATTEMPTS_KEPT:]
        status, wait = WebhookDelivery.Status.DELIVERED, 0.0
        if answer.good:
            self.succeeded = True
        else:
            self.line.clear()
            self.gone = self.gone or answer.status == GONE
            over = due.last or due.tries >= len(SCHEDULE)
            status = WebhookDelivery.Status.FAILED if over else WebhookDelivery.Status.PENDING
            wait = 0.0 if over else max(_jittered(SCHEDULE[due.tries]), answer.wait)
        self.told.append(DeliveryResult(due.id, status, wait, attempts))

    def skip(self, due: DueDelivery) -> None:
        """Give up what there is nothing to tell of any more."""
        self.under_way -= 1
        self.told.append(DeliveryResult(due.id, WebhookDelivery.Status.FAILED, 0.0, due.attempts))

    def settled(self) -> EndpointResult:
        """Sum the turn up."""
        failed = self.last is not None and not self.last.good
        before = 0 if self.succeeded else self.claim.endpoint.failures
        failures = before + 1 if failed else (0 if self.last else before)
        wait = 0.0
        if failed and self.last:
            backoff = _jittered(min(2.0 ** min(failures - 1, 30), BACKOFF_LIMIT))
            wait = max(backoff, self.last.wait)
        return EndpointResult(self.claim, self.told, wait, failures, self.succeeded, self.gone)


def _jittered(seconds: float) -> float:
    return seconds * random.uniform(1 - JITTER, 1 + JITTER)


Key = tuple[EndpointQueue, DueDelivery, float]
"""Whose request, for which notice, and when it began."""


class Dispatcher:
    """Turns of many endpoints, side by side."""

    def __init__(self, transport: Transport) -> None:
        self.flight: RequestsInFlight[Key] = RequestsInFlight(transport)
        self.turns: set[EndpointQueue] = set()

    def run(self, until: float) -> bool:
        """Tell what is due until nothing is, or a time (monotonic); gives whether all has ended."""
        look_at = 0.0
        while monotonic() < until:
            if monotonic() >= look_at and len(self.flight) < FLIGHT_LIMIT:
                taken = outbox.claim(FLIGHT_LIMIT - len(self.flight))
                self.begin(taken)
                look_at = monotonic() + (0.0 if taken else LOOK_SECONDS)
                if not self.turns and not taken:
                    return True
            if self._step(max(0.0, min(until, look_at) - monotonic())):
                look_at = 0.0
        for turn in self.turns:
            turn.line.clear()  # it stays due
        return not self.turns

    def finish(self) -> None:
        """Wait for what is under way: as long as a request may take, at most."""
        while self.turns:
            self._step(1.0)

    def begin(self, taken: list[ClaimedEndpoint]) -> None:
        """Begin endpoints' turns."""
        for claim in taken:
            turn = EndpointQueue(claim, deque(claim.due))
            self.turns.add(turn)
            self._send(turn)

    def _step(self, seconds: float) -> bool:
        """Hear what has ended; gives whether an endpoint's turn has."""
        for (turn, due, began), result in self.flight.step(seconds):
            turn.hear(due, _answer(result), int((monotonic() - began) * 1000))
            self._send(turn)
        ended = [turn for turn in self.turns if turn.ended]
        outbox.record([turn.settled() for turn in ended])
        self.turns.difference_update(ended)
        return bool(ended)

    def _send(self, turn: EndpointQueue) -> None:
        for due in turn.take():
            if due.body is None:
                turn.skip(due)
                continue
            try:
                request = _request(turn.claim, due, due.body)
            except InvalidRequest:  # an address that somebody wrote into the table by hand
                turn.hear(due, EndpointResponse(0, "not an address to call", "", 0.0), 0)
            else:
                self.flight.add((turn, due, monotonic()), request)


def _request(claim: ClaimedEndpoint, due: DueDelivery, body: bytes) -> Request:
    webhook_id, now = str(due.event_id), int(clock.now().timestamp())
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
        ),
        timeout=TIMEOUT,
        max_response=ANSWER_LIMIT,
    )


def dispatch(seconds: float = TURN_SECONDS) -> None:
    """Tell endpoints what is due, for some seconds. Returns at once where another worker does."""
    with locks.alone("messaging.webhooks.dispatcher") as alone:
        if not alone:
            return
        policy = AddressPolicy(settings.OUTBOUND_OPEN_HOSTS)
        hand = Dispatcher(Transport(policy, per_host=FLIGHT_LIMIT))
        over = True
        try:
            over = hand.run(monotonic() + seconds)
        finally:
            if over:
                hand.flight.close()
    if not over:
        threading.Thread(target=_finish, args=(hand,), name="notify", daemon=True).start()


def _finish(hand: Dispatcher) -> None:
    """Wait for what is slow. What is lost with the process is told again after the lease."""
    try:
        hand.finish()
    except Exception:  # no task's log hears of a thread
        log.exception("notify.lost")
    finally:
        hand.flight.close()
        connection.close()
