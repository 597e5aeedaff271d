"""The frame of a REST route that is answered by sets: what `RequestMiddleware` is for other calls.

One endpoint answers all requests of the route. Under a server that speaks WSGI, and in tests that
call Django, the view of the route (`SetView`) calls that endpoint too, for a set of one.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import ClassVar, NamedTuple

from django.conf import settings
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse
from django.middleware.security import SecurityMiddleware
from rest_framework.request import Request

from rme.core import errors, logs
from rme.core.db import availability
from rme.core.http import api, edge, request_records
from rme.core.http.chunked import Environ
from rme.core.http.parsing import BODY_LIMIT
from rme.core.http.request_records import NO_DETAILS, NO_PATH, AnsweredRequest, Details, Route
from rme.core.http.serving.sets import Later, SetRequest, SetResponse
from rme.core.process.error_boundary import ErrorBoundary
from rme.core.telemetry import tracing


class Content(NamedTuple):
    """A JSON text to answer with."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    details: Details = NO_DETAILS


Outcome = Content | Exception
Endpoint = Callable[[Sequence[SetRequest]], Sequence[Outcome | Callable[[], Outcome]]]
"""Answers requests: each by its content, its error, or a function that takes longer to answer."""


class FramedSets:
    """Answers the requests of a route by its endpoint (a `SetHandler`)."""

    def __init__(self, route: Route, endpoint: Endpoint, *, allowed: str) -> None:
        """`allowed` are the methods of the path."""
        self.route, self.endpoint, self.allowed = route, endpoint, allowed

    def read(self, environ: Environ, body: bytes) -> SetRequest:
        """Build a request of a set."""
        identifier = api.new_request_id(environ.get("HTTP_X_REQUEST_ID"))
        headers = {**_middleware_headers(), "Allow": self.allowed}
        return SetRequest(environ, body, identifier, time.monotonic(), frame_headers=headers)

    def answer(self, requests: Sequence[SetRequest]) -> list[SetResponse | Later]:
        """Answer a set, and write a log line for each of its requests."""
        availability.refresh()  # this thread keeps its connection
        if tracer := tracing.tracer():
            for request in requests:
                caller = str(request.headers.get("HTTP_TRACEPARENT", ""))
                span = api.begin_span(tracer, caller, time.monotonic() - request.started)
                request.span, request.traceparent = span, span.traceparent
        answers: list[SetResponse | Later] = [
            self._response(request, outcome)
            if isinstance(outcome, Content | Exception)
            else partial(self._answer_later, request, outcome)
            for request, outcome in zip(requests, self._outcomes(requests), strict=True)
        ]
        self._log(zip(requests, answers, strict=True))
        return answers

    def _outcomes(
        self, requests: Sequence[SetRequest]
    ) -> Iterable[Outcome | Callable[[], Outcome]]:
        """Return the outcomes of requests: those of the endpoint, unless the edge refuses one."""
        refusals = [_refusal(request) for request in requests]
        passed = [
            request for request, refusal in zip(requests, refusals, strict=True) if refusal is None
        ]
        outcomes = iter(self.endpoint(passed) if passed else ())
        return [refusal or next(outcomes) for refusal in refusals]

    def fail(self, request: SetRequest, error: BaseException) -> SetResponse:
        """Return the response to a request whose set has failed."""
        return self._answer(request, error if isinstance(error, Exception) else _busy())

    def refuse(self, request: SetRequest, *, late: bool) -> SetResponse:
        """Return the response to a request that is one too many, or has waited too long."""
        return self._answer(request, _late() if late else _busy())

    def _answer_later(self, request: SetRequest, run: Callable[[], Outcome]) -> SetResponse:
        if time.monotonic() - request.started > settings.DATABASE_SECONDS:
            return self._answer(request, _busy())
        with (
            logs.about(request.id, request.log_ids),
            tracing.activated(request.span),
            ErrorBoundary() as boundary,
        ):
            outcome = run()
        response = self._answer(request, boundary.error or outcome)
        close_old_connections()
        return response

    def _answer(self, request: SetRequest, outcome: Outcome) -> SetResponse:
        response = self._response(request, outcome)
        self._log([(request, response)])
        return response

    def _response(self, request: SetRequest, outcome: Outcome) -> SetResponse:
        content = outcome if isinstance(outcome, Content) else _of_error(outcome, request)
        headers = {
            **request.frame_headers,
            **content.headers,
            **request.response_headers,
            "X-Request-Id": request.id,
            "Content-Length": str(len(content.body)),
        }
        encoded = [
            (name.encode("latin-1"), text.encode("latin-1")) for name, text in headers.items()
        ]
        return SetResponse(content.status, encoded, content.body, content.details)

    def _log(self, answers: Iterable[tuple[SetRequest, SetResponse | Later]]) -> None:
        now = time.monotonic()
        answered: dict[Route, list[AnsweredRequest]] = {}
        for request, answer in answers:
            if isinstance(answer, SetResponse):
                path = NO_PATH if request.is_refused_at_edge else self.route.path
                answered.setdefault(self.route._replace(path=path), []).append(
                    AnsweredRequest(
                        answer.status,
                        now - request.started,
                        {"request_id": request.id, **request.log_ids},
                        answer.details,
                        request.span,
                        "HTTP_PREFER" in request.headers,
                    )
                )
        for route, requests in answered.items():
            request_records.record(route, requests)


class SetView(api.ApiView):
    """A REST view whose POST is answered by the endpoint of sets, for a set of one."""

    frame: ClassVar[FramedSets]

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        """Check a call before its method runs; the endpoint checks a POST itself."""
        if request.method != "POST":
            super().initial(request, *args, **kwargs)

    def answer(self, request: Request) -> HttpResponse:
        """Answer a POST. Raises its error."""
        whole = request._request
        call = SetRequest(
            whole.META,
            whole.body,
            api.id_of(whole),
            time.monotonic(),
            traceparent=tracing.active(),
        )
        (outcome,) = self.frame.endpoint([call])
        logs.caller.set(call.log_ids)
        self.headers.update(call.response_headers)
        content = outcome if isinstance(outcome, Content | Exception) else outcome()
        if isinstance(content, Exception):
            raise content
        return api.json_response(content.body, content.status, content.headers, content.details)


def _refusal(request: SetRequest) -> errors.ApiError | None:
    """Return the error of a request that the edge refuses, and set the headers of its response."""
    try:
        edge.check_call(request.headers)
    except errors.ApiError as error:
        request.frame_headers = {"Content-Type": "application/json"}
        request.is_refused_at_edge = True
        return error
    try:
        edge.bound_length(request.headers, BODY_LIMIT)
    except errors.ApiError as error:
        request.frame_headers = _middleware_headers()
        return error
    return None


def _of_error(error: Exception, request: SetRequest) -> Content:
    with logs.about(request.id, request.log_ids):
        api_error = api.as_api_error(error)
    response = api.error_response(api_error, request.id)
    headers = {name: text for name, text in response.items() if name != "Content-Type"}
    return Content(response.status_code, response.content, headers, api.details_of(api_error))


def _late() -> errors.Unavailable:
    return errors.Unavailable("The call has waited too long.", headers={"Retry-After": "5"})


def _busy() -> errors.Unavailable:
    return errors.Unavailable("Too many calls are waiting.", headers={"Retry-After": "1"})


@cache
def _middleware_headers() -> Mapping[str, str]:
    """Return the headers that Django's middleware sets, and the type."""
    plain = SecurityMiddleware(lambda request: api.json_response({}))(HttpRequest())
    assert isinstance(plain, HttpResponse)
    return dict(plain.items())
