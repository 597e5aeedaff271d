"""POST /messages: the endpoint that answers every request, as a set of one or of many.

Each step is done for all requests of a set before the next. Requests that may take long (a large
body, a dry run, a call that waits, several recipients) are answered by themselves, from the step
on that takes long: the requests of a set wait for each other.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from django.core.handlers.wsgi import WSGIRequest
from django.http import QueryDict
from pydantic import Field

from messaging.accept import (
    Call,
    SlowCheck,
    Submission,
    accept,
    accept_together,
    dry_run,
    idempotency,
    is_quick,
    results,
    waiting,
)
from messaging.accept.requests import MESSAGE, MessageInput
from messaging.api.common import json_of
from messaging.api.messages import dry_runs
from messaging.store.idempotency import StoredAnswer
from rme.core.http.api import require_query
from rme.core.http.fields import Query, Switch
from rme.core.http.parsing import parse, read_body, refuse_nul_in
from rme.core.http.request_records import Route
from rme.core.http.serving.sets import SetRequest
from rme.core.http.set_frame import Content, FramedSets, Outcome
from rme.core.process.admission import Owners
from rme.core.process.error_boundary import ErrorBoundary
from rme.tenants.oauth import call_limits, routes
from rme.tenants.oauth.authentication import Caller, caller_of_header
from rme.tenants.oauth.permissions import ProgramPermission

A = TypeVar("A")
B = TypeVar("B")

ROUTE = Route("POST", "/rme/v1/messages")
QUICK_BODY = 64 * 1024
"""The most bytes of a body that is read while other requests of its set wait."""


class SendQuery(Query):
    """The query of POST /messages."""

    dry_run: Switch = Field(
        default=False,
        description="Check, decide and render the message: nothing is stored or sent.",
    )


class _Send(NamedTuple):
    """A request that was read."""

    call: Call
    dry_run_of: MessageInput | None = None
    """The message that is only decided and rendered."""
    wait_seconds: int = 0

    @property
    def is_quick(self) -> bool:
        """Return whether it may be accepted together with others."""
        return not self.dry_run_of and not self.wait_seconds and is_quick(self.call)


class _Set:
    """Requests of a set, by index, and the outcomes that are known."""

    def __init__(self, requests: Sequence[SetRequest]) -> None:
        self.requests = dict(enumerate(requests))
        self.outcomes: dict[int, Outcome | Callable[[], Outcome]] = {}

    def each(self, step: Callable[[A], B], items: Mapping[int, A]) -> dict[int, B]:
        """Return the results of a step; an error is the outcome of its request alone."""
        results_of_step: dict[int, B] = {}
        for index, item in items.items():
            with ErrorBoundary() as boundary:
                results_of_step[index] = step(item)
            if boundary.error is not None:
                self.outcomes[index] = boundary.error
        return results_of_step

    def authenticate(self) -> dict[int, Caller]:
        """Return the callers that may send, after counting their calls."""
        callers = self.each(_caller_of, self.requests)
        decisions = dict(zip(callers, call_limits.take_each(list(callers.values())), strict=True))
        for index, decision in decisions.items():
            organization = callers[index].organization
            self.requests[index].response_headers = call_limits.headers(organization, decision)
        passed = self.each(call_limits.require, decisions)
        permitted = self.each(_require_send, {index: callers[index] for index in passed})
        return {index: callers[index] for index in permitted}

    def accept(self, callers: Mapping[int, Caller]) -> None:
        """Accept the calls that are quick, as one set; the others have to follow by themselves."""
        callers_and_requests = {i: (caller, self.requests[i]) for i, caller in callers.items()}
        small = {}
        for index, (caller, request) in callers_and_requests.items():
            if len(request.body) > QUICK_BODY:
                self.outcomes[index] = partial(_read_and_answer, caller, request)
            else:
                small[index] = (caller, request)
        sends = self.each(_read, small)
        quick = {index: send.call for index, send in sends.items() if send.is_quick}
        for index, send in sends.items():
            if index not in quick:
                self.outcomes[index] = partial(_answer_alone, send)
        for index, outcome in zip(quick, accept_together(list(quick.values())), strict=True):
            if isinstance(outcome, SlowCheck):
                self.outcomes[index] = partial(_answer_alone, sends[index], is_counted=True)
            else:
                self.outcomes[index] = (
                    outcome if isinstance(outcome, Exception) else _content(outcome)
                )


def answer(requests: Sequence[SetRequest]) -> list[Outcome | Callable[[], Outcome]]:
    """Return the outcome of each request, in their order."""
    running = _Set(requests)
    running.accept(running.authenticate())
    return [running.outcomes[index] for index in range(len(requests))]


def _caller_of(request: SetRequest) -> Caller:
    caller = caller_of_header(request.headers.get("HTTP_AUTHORIZATION", ""))
    request.log_ids, request.owners = caller.log_ids, Owners(caller.organization.id)
    return caller


def _require_send(caller: Caller) -> None:
    routes.require(caller, ROUTE.method, "messages")


def _read(caller_and_request: tuple[Caller, SetRequest]) -> _Send:
    caller, request = caller_and_request
    headers = request.headers
    query = WSGIRequest(headers).GET if headers["QUERY_STRING"] else QueryDict()
    if query:
        require_query(query, SendQuery.parameters())
    body = read_body(headers.get("CONTENT_TYPE", ""), request.body)
    refuse_nul_in(body, request.body)
    key = idempotency.key_of(headers.get("HTTP_IDEMPOTENCY_KEY"), body)
    message = parse(MESSAGE, body)
    call = Call(caller, Submission(message, key), request.id, request.traceparent)
    if query and SendQuery.read(query.dict()).dry_run:
        caller.grants.require(ProgramPermission.READ_PEOPLE)  # it shows the rendered content
        return _Send(call, dry_run_of=message)
    return _Send(call, wait_seconds=waiting.seconds(headers.get("HTTP_PREFER")))


def _read_and_answer(caller: Caller, request: SetRequest) -> Outcome:
    return _answer_alone(_read((caller, request)))


def _answer_alone(send: _Send, *, is_counted: bool = False) -> Outcome:
    call, seconds = send.call, send.wait_seconds
    if message := send.dry_run_of:
        outcome = dry_run.dry_run(call.caller, message, request_id=call.request_id)
        return Content(200, json_of(dry_runs.output(outcome)), {})
    wait = waiting.until_sent(call.caller.organization.id, seconds) if seconds else None
    result = accept(call, wait=wait, is_counted=is_counted)
    content = _content(result)
    if seconds and not isinstance(result, StoredAnswer):
        headers = {**content.headers, "Preference-Applied": f"wait={seconds}"}
        return content._replace(headers=headers)
    return content


def _content(outcome: results.Result) -> Content:
    headers, details = results.headers_of(outcome), results.details_of(outcome)
    return Content(outcome.status_code, outcome.body, headers, details)


SINGLE_SENDS = FramedSets(ROUTE, answer, allowed="GET, POST, HEAD")
