"""What programs do in a history: send, and send again what may not have arrived."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

from django.db import DatabaseError, InterfaceError

from messaging.accept import MessageResult, send
from rme.core import errors
from rme.core.db import availability
from rme.crm.models import Contact
from tests.simulation.world.clock import BEGINS
from tests.simulation.world.database import ORGANIZATION
from tests.simulation.world.faults import Faults
from tests.simulation.world.transactions import lose_connection
from tests.simulation.world.turns import Turns

LEAST, MOST = 2, 6
"""How many messages a history has."""
CATEGORIES = ("TRANSACTIONAL", "TRANSACTIONAL", "NEWS", "OFFERS")
ROUTES = (["EMAIL"], ["EMAIL"], ["SMS"], ["EMAIL", "SMS"], ["PUSH"], ["PUSH", "SMS"])
LOST = 0.35
"""How many answers a caller never gets, so that it calls again."""
REPEATED = 0.25
"""How many messages are sent by a second call at about the same time."""
SPAN_SECONDS = 8.0
"""The calls of a history are made within this time, if no fault delays them."""


@dataclass
class Sending:
    """A message that a caller sends, and what it was answered."""

    request: dict[str, Any]
    key: str | None
    at: float
    answers: list[MessageResult] = field(default_factory=list)
    refused: str | None = None
    was_unclear: bool = False
    """Whether a call ended without an answer."""


@dataclass
class Call:
    """A call of a caller, at its time."""

    at: float
    sending: Sending


class Callers:
    """The scripts of a history, and what came of them."""

    def __init__(
        self, rng: Random, turns: Turns, faults: Faults, people: Sequence[Contact]
    ) -> None:
        self._rng, self._turns, self._faults, self._people = rng, turns, faults, people
        self.sendings = [self._sending(number) for number in range(rng.randint(LEAST, MOST))]
        self.unexpected: list[str] = []
        self._calls = [Call(each.at, each) for each in self.sendings]
        self._repeats = [
            Call(each.at + rng.choice((0.0, 0.005, 0.02)), each)
            for each in self.sendings
            if each.key and rng.random() < REPEATED
        ]

    @property
    def has_work(self) -> bool:
        return bool(self._calls or self._repeats)

    def _sending(self, number: int) -> Sending:
        rng = self._rng
        category = rng.choice(CATEGORIES)
        channels = rng.choice(ROUTES)
        request: dict[str, Any] = {
            "channels": channels,
            "category": category,
            "to": [{"contactId": str(rng.choice(self._people).pk)}],
            "content": {"subject": f"m{number}", "title": f"m{number}", "text": "text"},
        }
        if len(channels) > 1:
            fallback = {"strategy": "FIRST_DELIVERED", "fallbackAfter": 60}
            request |= rng.choice(({}, fallback))
        key = f"key-{number}" if rng.random() < 0.8 else None
        if rng.random() < 0.2:
            moment = BEGINS + timedelta(seconds=rng.choice((5, 30, 100)))
            request["schedule"] = {"mode": "AT", "at": f"{moment:%Y-%m-%dT%H:%M:%SZ}"}
        return Sending(request, key, round(rng.uniform(0, SPAN_SECONDS), 3))

    # --- threads --------------------------------------------------------------------------------

    def run_sends(self) -> None:
        """Send each message at its time, and again with the same key until it is answered."""
        self._run(self._calls)

    def run_repeats(self) -> None:
        """Send some messages a second time, while the first call may still run."""
        self._run(self._repeats)

    def _run(self, calls: list[Call]) -> None:
        while calls:
            call = min(calls, key=lambda each: each.at)
            self._turns.sleep(call.at - self._turns.clock.now)
            if call.sending.key is None:  # to repeat it would be to send twice
                calls.remove(call)
            again = self._send(call.sending)
            if again is not None:
                call.at = self._turns.clock.now + again
            elif call in calls:
                calls.remove(call)

    def _send(self, each: Sending) -> float | None:
        """Call once; return after how many seconds to call again, or None."""
        each.was_unclear = True
        try:
            result = send(ORGANIZATION, dict(each.request), idempotency_key=each.key)
        except errors.ApiError as error:
            self._turns.note(f"refused {error.code}")
            if error.code == errors.IdempotencyInProgress.code:
                return 1.0
            each.refused = error.code
            return None
        except (DatabaseError, InterfaceError) as error:
            self.after_failure(error)
            return 0.5
        each.answers.append(result)
        self._turns.note(f"accepted {each.key}{' again' if result.replayed else ''}")
        if each.key and len(each.answers) == 1 and self._rng.random() < LOST:
            self._turns.note("the 202 is lost")
            return self._rng.choice((0.01, 0.5, 20.0))
        return None

    def after_failure(self, error: Exception) -> None:
        """Note what is a defect, and give up the connection."""
        if not availability.is_unavailable(error):
            self.unexpected.append(f"{type(error).__name__}: {error}")
        lose_connection()
