"""Records of answered requests: a log line, counts, the end of the span, and the request log.

Requests wait for nothing: a record for the request log goes to a buffer of this process, and
`rme.tenants.audit.request_log` stores the buffer every second. Records that find it full are
dropped and counted; those of a process that is killed are lost.
"""

import collections
import logging
import re
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

from django.conf import settings

from rme.core import logs
from rme.core.telemetry import tracing
from rme.core.telemetry.meters import Counter
from rme.core.telemetry.request_times import ACCEPT_SECONDS, REQUEST_SECONDS, REQUESTS, SECONDS
from rme.core.telemetry.spans import Span

SIZE = 20_000
"""The most records that wait: of four seconds at 5,000 requests a second."""
LOST = Counter("rme_request_log_lost_total", "Requests that are missing in the request log.")
REST_PREFIX = "/rme/v1/"
QUIET = frozenset({"/livez", "/readyz", "/metrics"})
"""Requested by monitoring every few seconds: logged at DEBUG."""
LOGGER = "rme.core.http.api"
NO_PATH = "(none)"
"""The path of requests for which there is no route: their own would be data."""


class Route(NamedTuple):
    """A method and a path."""

    method: str
    path: str


class Details(NamedTuple):
    """What a response says of its request, besides the status."""

    code: str = ""
    """The code of its error."""
    message_id: str | None = None


NO_DETAILS = Details()


class RequestRecord(NamedTuple):
    """A request that was answered. It has no bodies, no query and no addresses."""

    organization_id: str
    application_id: int
    request_id: str
    method: str
    route: str
    """The path with the names of its parameters, like `/rme/v1/messages/{message_id}`."""
    status: int
    seconds: float
    at: int
    """Nanoseconds since 1970."""
    details: Details


class RecordBuffer:
    """The records of this process that are not stored yet."""

    def __init__(self, size: int = SIZE) -> None:
        self.size = size
        self.is_on = False
        """Whether records are stored by anybody; otherwise none are kept."""
        self._records: collections.deque[RequestRecord] = collections.deque()

    def add(self, records: Sequence[RequestRecord]) -> None:
        """Keep records as long as there is room."""
        room = max(0, self.size - len(self._records))
        self._records.extend(records[:room])
        if len(records) > room:
            LOST.add(by=len(records) - room)

    def take(self, limit: int) -> list[RequestRecord]:
        """Remove and return the oldest records. One thread alone may call this."""
        count = min(limit, len(self._records))
        return [self._records.popleft() for _ in range(count)]


buffer = RecordBuffer()


class AnsweredRequest(NamedTuple):
    """A request that was answered."""

    status: int
    seconds: float
    ids: Mapping[str, object]
    """The ids of request and caller."""
    details: Details = NO_DETAILS
    span: Span | None = None
    is_waiting: bool = False
    """Whether it asked to wait for the outcome, so that its time says nothing of accepting."""


def record(route: Route, answered: Sequence[AnsweredRequest]) -> None:
    """Log and count the answered requests of a route, and end their spans."""
    is_quiet = route.path in QUIET
    lines = (
        {
            "method": route.method,
            "path": route.path,
            "status": request.status,
            "ms": round(request.seconds * 1000, 1),
            **request.ids,
            **_trace_of(request.span),
        }
        for request in answered
    )
    level = logging.DEBUG if is_quiet or route.path == NO_PATH else logging.INFO
    logs.write_each(LOGGER, level, "request", lines)
    for status, count in collections.Counter(str(each.status) for each in answered).items():
        REQUESTS.add(*route, status, by=count)
    seconds = sum(request.seconds for request in answered)
    SECONDS.add(*route, by=seconds)
    if not is_quiet and route.path.startswith(settings.API_PREFIXES):
        REQUEST_SECONDS.observe_each((request.seconds, route) for request in answered)
        ACCEPT_SECONDS.observe_each(
            (request.seconds, (route.path,))
            for request in answered
            if request.status == 202 and not request.is_waiting
        )
    for request in answered:
        if request.span:
            _end_span(request.span, route, request)
    if buffer.is_on and route.path.startswith(REST_PREFIX):
        _keep(route, answered)


def _end_span(span: Span, route: Route, request: AnsweredRequest) -> None:
    ids = {**request.ids, "message_id": request.details.message_id}
    attributes = {f"rme.{key}": value for key, value in ids.items() if isinstance(value, str | int)}
    span.end(
        {"http.route": route.path, "http.response.status_code": request.status, **attributes},
        name=f"{route.method} {route.path}",
        error=str(request.status) if request.status >= 500 else "",
    )


def _trace_of(span: Span | None) -> dict[str, str]:
    """Return the fields of a log line for a request's trace; empty without a trace."""
    return {"trace_id": tracing.trace_id(span.traceparent)} if span and span.traceparent else {}


def _keep(route: Route, answered: Sequence[AnsweredRequest]) -> None:
    """Add requests to the request log, unless they belong to no organization."""
    template, now = template_of(route.path), time.time_ns()
    buffer.add(
        [
            RequestRecord(
                organization_id=cast(str, request.ids["organization_id"]),
                application_id=cast(int, request.ids["application_id"]),
                request_id=cast(str, request.ids["request_id"]),
                method=route.method,
                route=template,
                status=request.status,
                seconds=request.seconds,
                at=now,
                details=request.details,
            )
            for request in answered
            if "application_id" in request.ids
        ]
    )


@lru_cache(maxsize=256)
def template_of(path: str) -> str:
    """Return a route as the API's description writes it, like `/messages/{message_id}`."""
    return _PARAMETER.sub(r"{\1}", path)


_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
