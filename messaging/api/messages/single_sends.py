"""POST /messages for many requests at once, which the gateway hands over as a set.

Each step is done for all of them before the next. What a call of `SendMessage` does, is done here
by the same functions, in the same order.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from messaging.accept import (
    Call,
    Submission,
    accept,
    accept_together,
    idempotency,
    is_quick,
    results,
)
from messaging.accept.idempotency import CallerKey
from messaging.accept.requests import MESSAGE, MessageInput
from rme.core.http.gateway import Route
from rme.core.http.parsing import parse, read_json, refuse_nul_in
from rme.core.http.set_frame import Content, FramedSets, Outcome
from rme.core.http.sets import SetRequest
from rme.core.process.error_boundary import ErrorBoundary
from rme.tenants import call_limits
from rme.tenants.authentication import Caller, caller_of_header

A = TypeVar("A")
B = TypeVar("B")


def read_message(body: object, key: str | None) -> tuple[MessageInput, CallerKey | None]:
    """Return the message and the key of a request with that JSON body and Idempotency-Key.

    Raises InvalidPayload.
    """
    known = idempotency.key_of(key, body)
    return parse(MESSAGE, body), known


class _Set:
    """Requests on their way, by index, and the outcomes that are known."""

    def __init__(self, requests: Sequence[SetRequest]) -> None:
        self.requests = dict(enumerate(requests))
        self.outcomes: dict[int, Outcome | Callable[[], Outcome]] = {}

    def each(self, step: Callable[[A], B], items: Mapping[int, A]) -> dict[int, B]:
        """Return the results of a step; an error is the outcome of its request alone."""
        done: dict[int, B] = {}
        for index, item in items.items():
            with ErrorBoundary() as boundary:
                done[index] = step(item)
            if boundary.error is not None:
                self.outcomes[index] = boundary.error
        return done

    def authenticate(self) -> dict[int, Caller]:
        """Return the callers, whose calls have been counted and may pass."""
        callers = self.each(_caller_of, self.requests)
        decisions = dict(zip(callers, call_limits.take_each(list(callers.values())), strict=True))
        for index, decision in decisions.items():
            organization = callers[index].organization
            self.requests[index].response_headers = call_limits.headers(organization, decision)
        passed = self.each(call_limits.require, decisions)
        return {index: callers[index] for index in passed}

    def accept(self, callers: Mapping[int, Caller]) -> None:
        """Accept the calls that are quick, as one set; the others have to follow by themselves."""
        given = {index: (caller, self.requests[index]) for index, caller in callers.items()}
        calls = self.each(_read, given)
        quick = {index: call for index, call in calls.items() if is_quick(call)}
        for index, call in calls.items():
            if index not in quick:
                self.outcomes[index] = partial(_accept_alone, call)
        for index, outcome in zip(quick, accept_together(list(quick.values())), strict=True):
            self.outcomes[index] = _shown(outcome)


def answer(requests: Sequence[SetRequest]) -> list[Outcome | Callable[[], Outcome]]:
    """Return the outcome of each request, in their order."""
    running = _Set(requests)
    running.accept(running.authenticate())
    return [running.outcomes[index] for index in range(len(requests))]


def _caller_of(request: SetRequest) -> Caller:
    caller = caller_of_header(request.headers.get("HTTP_AUTHORIZATION", ""))
    request.log_ids = caller.log_ids
    return caller


def _read(given: tuple[Caller, SetRequest]) -> Call:
    caller, request = given
    body = read_json(request.body)
    refuse_nul_in(body, request.body)
    message, key = read_message(body, request.headers.get("HTTP_IDEMPOTENCY_KEY"))
    return Call(caller, Submission(message, key), request.id, request.traceparent)


def _accept_alone(call: Call) -> Outcome:
    return _shown(accept(call))


def _shown(outcome: results.Result | Exception) -> Outcome:
    if isinstance(outcome, Exception):
        return outcome
    headers, details = results.headers_of(outcome), results.details_of(outcome)
    return Content(outcome.status_code, outcome.body, headers, details)


SINGLE_SENDS = FramedSets(
    Route("POST", "/rme/v1/messages"),
    answer,
    allowed="GET, POST, HEAD",
    without={"HTTP_PREFER"},  # a call that waits takes a thread
)
