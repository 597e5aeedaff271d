"""The frame of a REST route that is answered by sets: what `RequestMiddleware` is for other calls.

It takes requests of the usual shape alone. All others are answered the ordinary way, so that each
unusual case has one home. The two ways give the same responses:
`tests/messaging/api/test_single_sends.py` compares them.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple

from django.conf import settings
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse
from django.middleware.security import SecurityMiddleware

from rme.core import errors, logs
from rme.core.db import availability
from rme.core.http import api, edge
from rme.core.http.chunked import Environ
from rme.core.http.gateway import Route
from rme.core.http.request_records import NO_DETAILS, Details
from rme.core.http.sets import Headers, Later, SetRequest, SetResponse
from rme.core.process.error_boundary import ErrorBoundary
from rme.core.telemetry import tracing

BODY_LIMIT = 64 * 1024
"""Larger bodies go the ordinary way: the requests of a set are read one after the other."""
_JSON = frozenset(
    f"application/json{charset}" for charset in ("", ";charset=utf-8", "; charset=utf-8")
)


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

    def __init__(
        self, route: Route, endpoint: Endpoint, *, allowed: str, without: Collection[str] = ()
    ) -> None:
        """`allowed` are the methods of the path; requests with one of the headers `without` are
        answered the ordinary way.
        """
        self.route, self.endpoint, self.allowed, self.without = route, endpoint, allowed, without

    def read(self, environ: Environ, body: bytearray) -> SetRequest | None:
        """Return a request of the usual shape; None for any other."""
        if (
            not 0 < len(body) <= BODY_LIMIT
            or environ["QUERY_STRING"]
            or environ.get("CONTENT_TYPE", "").lower() not in _JSON
            or not edge.passes(environ)
            or any(name in environ for name in self.without)
        ):
            return None
        identifier = api.new_request_id(environ.get("HTTP_X_REQUEST_ID"))
        return SetRequest(environ, bytes(body), identifier, time.monotonic())

    def answer(self, requests: Sequence[SetRequest]) -> list[SetResponse | Later]:
        """Answer a set, and write a log line for each of its requests."""
        availability.refresh()  # this thread keeps its connection
        if tracer := tracing.tracer():
            for request in requests:
                given = str(request.headers.get("HTTP_TRACEPARENT", ""))
                request.span = api.begin_span(tracer, given, time.monotonic() - request.started)
        answers: list[SetResponse | Later] = [
            self._response(request, outcome)
            if isinstance(outcome, Content | Exception)
            else partial(self._answer_later, request, outcome)
            for request, outcome in zip(requests, self.endpoint(requests), strict=True)
        ]
        self._log(zip(requests, answers, strict=True))
        return answers

    def fail(self, request: SetRequest, error: BaseException) -> SetResponse:
        """Return the response to a request whose set has failed."""
        return self._answer(request, error if isinstance(error, Exception) else _busy())

    def refuse(self, request: SetRequest, *, late: bool) -> SetResponse:
        """Return the response to a request that is one too many, or has waited too long."""
        return self._answer(request, _late() if late else _busy())

    def _answer_later(self, request: SetRequest, run: Callable[[], Outcome]) -> SetResponse:
        if time.monotonic() - request.started > settings.DATABASE_SECONDS:
            return self._answer(request, _busy())
        with ErrorBoundary() as boundary:
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
            **content.headers,
            "Allow": self.allowed,
            **request.response_headers,
            "X-Request-Id": request.id,
            "Content-Length": str(len(content.body)),
        }
        encoded = [
            (name.encode("latin-1"), text.encode("latin-1")) for name, text in headers.items()
        ]
        return SetResponse(
            content.status, _fixed_headers() + encoded, content.body, content.details
        )

    def _log(self, answers: Iterable[tuple[SetRequest, SetResponse | Later]]) -> None:
        now = time.monotonic()
        answered = [
            api.AnsweredRequest(
                answer.status, now - request.started, _ids(request), answer.details, request.span
            )
            for request, answer in answers
            if isinstance(answer, SetResponse)
        ]
        if answered:
            api.log_requests(self.route, answered)


def _ids(request: SetRequest) -> dict[str, object]:
    return {"request_id": request.id, **request.log_ids}


def _of_error(error: Exception, request: SetRequest) -> Content:
    with logs.about(request.id, request.log_ids):
        found = api.as_api_error(error)
    response = api.error_response(found, request.id)
    headers = {name: text for name, text in response.items() if name != "Content-Type"}
    return Content(response.status_code, response.content, headers, api.details_of(found))


def _late() -> errors.Unavailable:
    return errors.Unavailable("The call has waited too long.", headers={"Retry-After": "5"})


def _busy() -> errors.Unavailable:
    return errors.Unavailable("Too many calls are waiting.", headers={"Retry-After": "1"})


@cache
def _fixed_headers() -> Headers:
    """Return the headers of every response: those of Django's middleware, and the type."""
    plain = SecurityMiddleware(lambda request: api.json_response({}))(HttpRequest())
    assert isinstance(plain, HttpResponse)
    return [(name.encode(), text.encode()) for name, text in plain.items()]
