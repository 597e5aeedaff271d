"""A customer's webhook endpoint: it answers, fails, or lets the dispatcher wait."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

from messaging.webhooks import dispatcher, outbox
from messaging.webhooks.outbox import ClaimedEndpoint
from rme.transport import Failure, FailureKind, Reply, Request
from tests.simulation.world.faults import Faults
from tests.simulation.world.turns import Threading, Turns

ENDPOINTS = 2
SHARE = 0.2
"""In how many histories webhooks are dispatched: it takes as many steps as all else."""
FATES = {"accepts": 70, "accepts slowly": 10, "fails": 10, "does not answer": 10}
SLOW_SECONDS = (0.3, 4.0, 12.0)
TIMEOUT_SECONDS = 15.0
LEASE_SECONDS = outbox.LEASE_SECONDS


_real_claim = outbox.claim


class Acceptance(NamedTuple):
    """An event that an endpoint has accepted."""

    at: float
    lease_until: float
    """Until when nobody else might send it."""


class Endpoints:
    """The endpoints of one history, and what they were sent."""

    def __init__(self, rng: Random, turns: Turns, faults: Faults) -> None:
        self.rng, self.turns, self.faults = rng, turns, faults
        self.are_called = rng.random() < SHARE
        self.at_rest = False
        self.accepted: defaultdict[tuple[str, str], list[Acceptance]] = defaultdict(list)
        """What each endpoint has accepted, by URL and webhook-id."""
        self._leases: dict[tuple[int, int], float] = {}
        """Until when the claim of an endpoint lasts, by endpoint and fence."""

    def _claim(self, limit: int) -> list[ClaimedEndpoint]:
        until = self.turns.clock.now + LEASE_SECONDS
        claims = _real_claim(limit)
        self._leases |= {(each.endpoint.pk, each.fence): until for each in claims}
        return claims

    def answer(self, request: Request, claim: ClaimedEndpoint) -> tuple[float, Reply | Failure]:
        """Take a request; return after how many seconds it is answered, and how."""
        fate = self.rng.choices(list(FATES), list(FATES.values()))[0]
        if self.at_rest:
            fate = "accepts"
        self.turns.note(f"{request.url} {fate}")
        seconds = self.rng.choice(SLOW_SECONDS) if fate == "accepts slowly" else 0.01
        if fate == "fails":
            return seconds, Reply(500)
        if fate == "does not answer":
            return TIMEOUT_SECONDS, Failure(FailureKind.UNKNOWN, "no answer")
        accepted = Acceptance(self.turns.clock.now, self._leases[claim.endpoint.pk, claim.fence])
        self.accepted[request.url, dict(request.headers)["webhook-id"]].append(accepted)
        return seconds, Reply(200)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Stand where the dispatcher's transport does."""
        with ExitStack() as stack:
            stack.enter_context(patch.object(outbox, "claim", self._claim))
            stack.enter_context(patch.object(dispatcher, "threading", Threading))
            stack.enter_context(patch.object(dispatcher, "Transport", lambda *_, **__: self))
            stack.enter_context(patch.object(dispatcher, "RequestsInFlight", _InFlight))
            stack.enter_context(patch.object(dispatcher, "thread_time", lambda: 0.0))
            yield


class _InFlight:
    """`RequestsInFlight`, whose answers come by the virtual clock."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints
        self._active: list[tuple[float, Any, Reply | Failure]] = []

    def __len__(self) -> int:
        return len(self._active)

    def add(self, key: Any, request: Request) -> None:
        """Start a request."""
        seconds, result = self._endpoints.answer(request, key.queue.claim)
        self._active.append((self._endpoints.turns.clock.after(seconds), key, result))

    def step(self, seconds: float) -> list[tuple[Any, Reply | Failure]]:
        """Wait for the next answer, at most some seconds; return those that have come."""
        clock = self._endpoints.turns.clock
        first = min((due for due, _, _ in self._active), default=clock.after(seconds))
        self._endpoints.turns.sleep(min(seconds, max(0.0, first - clock.now)))
        self._endpoints.faults.in_call()
        ended = [(key, result) for due, key, result in self._active if due <= clock.now]
        self._active = [each for each in self._active if each[0] > clock.now]
        return ended

    def close(self) -> None:
        """Forget what is in flight."""
        self._active.clear()
