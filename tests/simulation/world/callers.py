"""What programs do in a history: send, and send again what may not have arrived."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any, TypeVar

import orjson
from django.db import DatabaseError, InterfaceError

from messaging import accept
from messaging.accept import Submission, idempotency
from messaging.accept.grouping import Outcome
from messaging.accept.programmatic import PROGRAM
from messaging.accept.requests import MESSAGE
from messaging.accept.results import BulkResult, Refusal, SendResult
from rme.core import errors
from rme.core.db import availability
from rme.core.http.parsing import parse
from rme.crm.models import Contact
from rme.tenants import organizations
from rme.tenants.oauth.authentication import Caller
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
"""How many calls are made a second time at about the same time."""
SPAN_SECONDS = 8.0
"""The calls of a history are made within this time, if no fault delays them."""
WAYS = {"program": 40, "set": 40, "bulk": 20}
"""How messages are sent: by a program, as REST calls that are accepted together, as a bulk."""
SEVERAL = 0.1
"""How many messages have several recipients."""

A = TypeVar("A")
Answer = str | Exception
"""The id of the message that was accepted, or the error that its caller got."""


@dataclass
class Sending:
    """A message that a caller sends, and what it was answered."""

    request: dict[str, Any]
    key: str | None
    at: float
    answers: list[str] = field(default_factory=list)
    """The ids of the message, as often as it was accepted."""
    refused: str | None = None
    named: set[str] = field(default_factory=set)
    """The ids of messages that were stored though they were refused."""
    was_unclear: bool = False
    """Whether a call ended without an answer."""

    @property
    def recipients(self) -> int:
        return len(self.request["to"])


@dataclass
class Call:
    """A call of a caller at its time, with one message or several."""

    at: float
    sendings: list[Sending]
    way: str
    key: str | None = None
    """The key of a bulk as a whole."""
    is_answered: bool = False

    @property
    def repeatable(self) -> list[Sending]:
        """Return what may be sent again: to repeat what has no key would be to send twice."""
        return self.sendings if self.key else [each for each in self.sendings if each.key]


class Callers:
    """The scripts of a history, and what came of them."""

    def __init__(
        self, rng: Random, turns: Turns, faults: Faults, people: Sequence[Contact]
    ) -> None:
        self._rng, self._turns, self._faults, self._people = rng, turns, faults, people
        self.sendings = [self._sending(number) for number in range(rng.randint(LEAST, MOST))]
        self.unexpected: list[str] = []
        self._calls = self._grouped()
        self._repeats = [
            Call(each.at + rng.choice((0.0, 0.005, 0.02)), each.repeatable, each.way, each.key)
            for each in self._calls
            if each.repeatable and rng.random() < REPEATED
        ]
        for each in self._repeats:
            if each.key is None:  # what was one call may be repeated by another kind
                each.way = self._way()

    @property
    def has_work(self) -> bool:
        return bool(self._calls or self._repeats)

    def _sending(self, number: int) -> Sending:
        rng = self._rng
        category = rng.choice(CATEGORIES)
        channels = rng.choice(ROUTES)
        people = rng.sample(self._people, rng.choice((2, 3)) if rng.random() < SEVERAL else 1)
        request: dict[str, Any] = {
            "channels": channels,
            "category": category,
            "to": [{"contactId": str(each.pk)} for each in people],
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

    def _way(self) -> str:
        return self._rng.choices(list(WAYS), list(WAYS.values()))[0]

    def _grouped(self) -> list[Call]:
        """Return the calls: of sets and bulks, each has up to three messages."""
        rng, left, calls = self._rng, list(self.sendings), []
        while left:
            way = self._way()
            count = 1 if way == "program" else rng.randint(1, 3)
            some, left = left[:count], left[count:]
            key = f"bulk-{len(left)}" if way == "bulk" and rng.random() < 0.5 else None
            calls.append(Call(some[0].at, some, way, key))
        return calls

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
            sendings = call.sendings
            call.sendings = call.repeatable
            if not call.sendings:
                calls.remove(call)
            again = self._send(call, sendings)
            if again is not None:
                call.at = self._turns.clock.now + again
            elif call in calls:
                calls.remove(call)

    def _send(self, call: Call, sendings: Sequence[Sending]) -> float | None:
        """Call once; return after how many seconds to call again, or None."""
        before = [each.was_unclear for each in sendings]
        for each in sendings:
            each.was_unclear = True
        found = _caught(partial(_SENDS[call.way], sendings, call.key))
        answers = [found] * len(sendings) if isinstance(found, Exception) else found
        waits = []
        for each, answer, was_unclear in zip(sendings, answers, before, strict=True):
            waits.append(self._note(each, answer))
            each.was_unclear = was_unclear or isinstance(answer, _UNCLEAR)
        for answer in {id(each): each for each in answers if isinstance(each, _AWAY)}.values():
            self.after_failure(answer)
        left = [each for each, wait in zip(sendings, waits, strict=True) if wait is not None]
        if left:
            if call.key is None:
                call.sendings = [each for each in left if each.key]
            return max(wait for wait in waits if wait is not None) if call.sendings else None
        if call.sendings and not call.is_answered and self._rng.random() < LOST:
            call.is_answered = True
            self._turns.note("the 202 is lost")
            return self._rng.choice((0.01, 0.5, 20.0))
        return None

    def _note(self, each: Sending, answer: Answer) -> float | None:
        """Note an answer; return after how many seconds to ask again, or None."""
        if isinstance(answer, str):
            self._turns.note(f"accepted {each.key}{' again' if each.answers else ''}")
            each.answers.append(answer)
            return None
        if isinstance(answer, errors.ApiError):
            self._turns.note(f"refused {answer.code}")
            if isinstance(answer, errors.IdempotencyInProgress):
                return 1.0
            if not isinstance(answer, errors.Unavailable):
                each.refused = answer.code
                each.named |= {answer.message_id} if answer.message_id else set()
                return None
        elif not isinstance(answer, _AWAY):
            self.unexpected.append(f"{type(answer).__name__}: {answer}")
            return None
        return 0.5

    def after_failure(self, error: Exception) -> None:
        """Note what is a defect, and give up the connection."""
        if not availability.is_unavailable(error):
            self.unexpected.append(f"{type(error).__name__}: {error}")
        lose_connection()


# --- the ways to send -----------------------------------------------------------------------------

_AWAY = (DatabaseError, InterfaceError)
_UNCLEAR = (*_AWAY, errors.Unavailable)


def _by_program(sendings: Sequence[Sending], key: str | None) -> list[Answer]:
    """Send one by one, by the function for programs."""
    return [_caught(partial(_send_one, each)) for each in sendings]


def _send_one(each: Sending) -> Answer:
    return accept.send(ORGANIZATION, dict(each.request), idempotency_key=each.key).message_id


def _caught(job: Callable[[], A]) -> A | Exception:
    """Return what a job returns, or the error that a caller gets."""
    try:
        return job()
    except (errors.ApiError, *_AWAY) as error:
        if isinstance(error, _AWAY):
            lose_connection()
        return error


def _as_set(sendings: Sequence[Sending], key: str | None) -> list[Answer]:
    """Send as REST calls that arrive together: those that are quick are accepted as one set."""
    calls = [accept.Call(_caller(), each, "request") for each in map(_submission, sendings)]
    quick = [call for call in calls if accept.is_quick(call)]
    found = dict(zip(map(id, quick), accept.accept_together(quick), strict=True))
    for call in calls:
        if id(call) not in found:
            found[id(call)] = _caught(partial(accept.accept, call))
    return [_answer(found[id(call)]) for call in calls]


def _as_bulk(sendings: Sequence[Sending], key: str | None) -> list[Answer]:
    """Send as one bulk."""
    submissions = [_submission(each) for each in sendings]
    whole = idempotency.key_of(key, [each.request for each in sendings])
    result = accept.accept_bulk(_caller(), submissions, key=whole, request_id="request")
    if isinstance(result, BulkResult):
        return [_answer(each) for each in result.results]
    return [_stored(each) for each in orjson.loads(result.body)["results"]]


_SENDS: Mapping[str, Callable[[Sequence[Sending], str | None], list[Answer]]] = {
    "program": _by_program,
    "set": _as_set,
    "bulk": _as_bulk,
}


def _caller() -> Caller:
    return Caller(organizations.get(ORGANIZATION), PROGRAM, PROGRAM, test=False)


def _submission(each: Sending) -> Submission:
    return Submission(parse(MESSAGE, each.request), idempotency.key_of(each.key, each.request))


def _answer(result: Outcome) -> Answer:
    match result:
        case Exception():
            return result
        case Refusal(error=error):
            return error
        case SendResult(message_id=str(message_id)):
            return message_id
    return _stored(orjson.loads(result.body))


def _stored(answer: Any) -> Answer:
    """Return the answer that an idempotency key stored."""
    if error := answer.get("error"):
        return errors.by_code()[error["code"]](error["message"], message_id=error["messageId"])
    message_id: str = answer["messageId"]
    return message_id
