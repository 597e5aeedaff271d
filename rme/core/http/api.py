"""The frame of the REST API: request ids, JSON in and out, and exceptions turned into responses.

The one place where an exception becomes a response. Views raise `rme.core.errors`; any other
exception is logged with the request id, and the caller gets INTERNAL_ERROR.
"""

import re
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, cast

import orjson
import structlog
import uuid_utils
from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.db import Error
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import Resolver404, resolve
from rest_framework import exceptions as drf
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from rme.core import errors, logs
from rme.core.db import availability
from rme.core.http import edge, request_records
from rme.core.http.gateway import Route
from rme.core.http.pages import error_page
from rme.core.http.parsing import JsonRenderer
from rme.core.http.request_records import NO_DETAILS, Details, RequestRecord
from rme.core.redis import counters
from rme.core.telemetry import tracing
from rme.core.telemetry.request_times import ACCEPT_SECONDS, REQUEST_SECONDS
from rme.core.telemetry.spans import Span, SpanKind, Tracer

log = structlog.get_logger(__name__)

REST_PREFIX = "/rme/v1/"
METHODS = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"})
QUIET = frozenset({"/livez", "/readyz", "/metrics"})
"""Requested by monitoring every few seconds: logged at DEBUG."""
_RENDERER = "render_error"
"""The attribute of a view that renders its errors; see `set_error_renderer`."""


def new_request_id(given: str | None) -> str:
    """Return the caller's request id if it is a UUID, else a new one."""
    try:
        return str(uuid.UUID(given)) if given else str(uuid_utils.uuid4())
    except ValueError:
        return str(uuid_utils.uuid4())


class IdentifiedRequest(HttpRequest):
    """A request that has passed the `RequestMiddleware`."""

    id: str


def id_of(request: HttpRequest) -> str:
    """Return the id that the middleware has assigned to a request."""
    return cast(IdentifiedRequest, request).id


class RequestMiddleware:
    """Assigns request ids, answers exceptions that no view caught, and logs each request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        edge.normalize(request.META)  # before any header is read
        identifier = new_request_id(request.headers.get("X-Request-Id"))
        cast(IdentifiedRequest, request).id = identifier
        span = _span_of(request)
        with logs.about(identifier, {}), tracing.activated(span):
            response = self._answer(request, identifier)
            log_request(request, response, time.perf_counter() - started, span)
        return response

    def _answer(self, request: HttpRequest, identifier: str) -> HttpResponse:
        try:
            edge.check(request)
        except errors.ApiError as error:
            response = refuse(request, error)
        else:
            response = self.get_response(request)
        if response.status_code == 404 and is_rest(request) and not is_json(response):
            response = error_response(errors.NotFound("There is no such path."), identifier)
        response["X-Request-Id"] = identifier
        if not response.streaming and not response.has_header("Content-Length"):
            response["Content-Length"] = str(len(response.content))
        return response

    def process_view(
        self, request: HttpRequest, view: object, args: object, kwargs: object
    ) -> HttpResponse | None:
        """Refuse a body that is too large for its view before anything reads it."""
        try:
            edge.bound_body(request, view)
        except errors.ApiError as error:
            return refuse(request, error)
        return None

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Answer for views that are not REST framework's; `handler500` answers for pages."""
        match = request.resolver_match
        if is_rest(request) or (match and hasattr(match.func, _RENDERER)):
            return refuse(request, as_api_error(exception))
        return refuse(request, exception) if isinstance(exception, errors.ApiError) else None


def set_error_renderer(
    render: Callable[[HttpRequest, errors.ApiError], HttpResponse], *views: object
) -> None:
    """Let `render` build the error responses of views whose service has errors of another shape."""
    for view in views:
        setattr(view, _RENDERER, render)


def refuse(request: HttpRequest, error: errors.ApiError) -> HttpResponse:
    """Return an error in the shape of its path: the API's JSON, the view's own, or a page."""
    if is_rest(request):
        return error_response(error, id_of(request))
    try:
        view = (request.resolver_match or resolve(request.path_info)).func
    except Resolver404:
        view = None
    response: HttpResponse = getattr(view, _RENDERER, error_page)(request, error)
    return response


def failed(request: HttpRequest) -> HttpResponse:
    """Log the current exception with the user's id, and return a page (`handler500`).

    Django calls this for views, templates and middleware. It reads nothing from the database, which
    may be what failed: a user that was not loaded yet is not named.
    """
    user = getattr(request, "_cached_user", None)
    if user is not None and user.pk is not None:
        logs.caller.set({**logs.caller.get(), "user_id": user.pk})
    exception = sys.exc_info()[1]
    assert isinstance(exception, Exception)  # Django calls a handler500 while it handles one
    return error_page(request, as_api_error(exception))


def _span_of(request: HttpRequest) -> Span | None:
    """Begin the span of a request by a program, where tracing is on; pages have none."""
    tracer = tracing.tracer()
    path = request.path_info
    if tracer is None or path in QUIET or not path.startswith(settings.API_PREFIXES):
        return None
    return begin_span(tracer, request.headers.get("traceparent", ""))


def begin_span(tracer: Tracer, traceparent: str, age: float = 0.0) -> Span:
    """Begin the span of a request, below the step that its caller's traceparent names."""
    return tracer.begin("request", SpanKind.SERVER, parent=traceparent, age=age)


def _end_span(span: Span, route: Route, status: int, ids: Mapping[str, object]) -> None:
    known = {f"rme.{key}": value for key, value in ids.items() if isinstance(value, str | int)}
    span.end(
        {"http.route": route.path, "http.response.status_code": status, **known},
        name=f"{route.method} {route.path}",
        error=str(status) if status >= 500 else "",
    )


def _trace_of(span: Span | None) -> dict[str, str]:
    """Return what a log line has of a request's trace; nothing where there is none."""
    return {"trace_id": tracing.trace_id(span.traceparent)} if span and span.traceparent else {}


def log_request(
    request: HttpRequest, response: HttpResponse, seconds: float, span: Span | None = None
) -> None:
    """Log and count a request by the route of its path, because the path itself holds data."""
    match = request.resolver_match
    path = f"/{match.route}" if match else "(none)"
    method = request.method if request.method in METHODS else "(other)"
    write = log.debug if path in QUIET or match is None else log.info
    milliseconds = round(seconds * 1000, 1)
    write("request", method=method, path=path, status=response.status_code, ms=milliseconds)
    counters.add("rme_requests_total", method, path, str(response.status_code))
    counters.add("rme_request_seconds_total", method, path, by=seconds)
    if path not in QUIET and path.startswith(settings.API_PREFIXES):
        REQUEST_SECONDS.observe(seconds, method, path)
        if response.status_code == 202 and "Prefer" not in request.headers:
            ACCEPT_SECONDS.observe(seconds, path)
    if span:
        ids = {"request_id": id_of(request), **logs.caller.get()}
        _end_span(span, Route(method, path), response.status_code, ids)
    if request_records.buffer.is_on and match is not None and is_rest(request):
        details = response.details if isinstance(response, ApiResponse) else NO_DETAILS
        if details is NO_DETAILS and response.status_code < 400:
            details = Details(message_id=match.kwargs.get("message_id"))
        ids = {"request_id": id_of(request), **logs.caller.get()}
        answered = AnsweredRequest(response.status_code, seconds, ids, details)
        _keep_records(Route(method, path), [answered])


class AnsweredRequest(NamedTuple):
    """A request of a set that was answered."""

    status: int
    seconds: float
    ids: Mapping[str, object]
    """The ids of request and caller."""
    details: Details = NO_DETAILS
    span: Span | None = None


def log_requests(route: Route, answered: Sequence[AnsweredRequest]) -> None:
    """Log and count the requests of a set, as `log_request` does for one."""
    given = {"method": route.method, "path": route.path}
    lines = (
        {
            **given,
            "status": each.status,
            "ms": round(each.seconds * 1000, 1),
            **each.ids,
            **_trace_of(each.span),
        }
        for each in answered
    )
    logs.info_each(__name__, "request", lines)
    for status, count in Counter(str(each.status) for each in answered).items():
        counters.add("rme_requests_total", *route, status, by=count)
    counters.add("rme_request_seconds_total", *route, by=sum(each.seconds for each in answered))
    REQUEST_SECONDS.observe_each((each.seconds, route) for each in answered)
    ACCEPT_SECONDS.observe_each(
        (each.seconds, (route.path,)) for each in answered if each.status == 202
    )
    for each in answered:
        if each.span:
            known = {**each.ids, "message_id": each.details.message_id}
            _end_span(each.span, route, each.status, known)
    if request_records.buffer.is_on:
        _keep_records(route, answered)


def _keep_records(route: Route, answered: Sequence[AnsweredRequest]) -> None:
    """Add requests to the request log; not those that belong to no organization."""
    template, now = template_of(route.path), time.time_ns()
    request_records.buffer.add(
        [
            RequestRecord(
                organization_id=cast(str, each.ids["organization_id"]),
                application_id=cast(int, each.ids["application_id"]),
                request_id=cast(str, each.ids["request_id"]),
                method=route.method,
                route=template,
                status=each.status,
                seconds=each.seconds,
                at=now,
                details=each.details,
            )
            for each in answered
            if "application_id" in each.ids
        ]
    )


@lru_cache(maxsize=256)
def template_of(path: str) -> str:
    """Return a route as the API's description writes it, like `/messages/{message_id}`."""
    return _PARAMETER.sub(r"{\1}", path)


_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")


def is_rest(request: HttpRequest) -> bool:
    """Return whether a request is for the REST API."""
    return request.path_info.startswith(REST_PREFIX) or request.path_info == REST_PREFIX[:-1]


def is_json(response: HttpResponse) -> bool:
    """Return whether a response is JSON already."""
    return response.get("Content-Type", "").startswith("application/json")


class ApiResponse(HttpResponse):
    """A JSON response, and what the request log has of it."""

    details: Details = NO_DETAILS


def json_response(
    body: object,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    details: Details = NO_DETAILS,
) -> HttpResponse:
    """Return a JSON response. Bytes are taken to be JSON already."""
    content = body if isinstance(body, bytes) else orjson.dumps(body)
    response = ApiResponse(content, status=status, content_type="application/json", headers=headers)
    response.details = details
    return response


def error_response(error: errors.ApiError, request_id: str) -> HttpResponse:
    """Return the response for an error, in the shape of the contract."""
    body = {"error": error.as_json(request_id)}
    return json_response(body, error.status, error.headers, details_of(error))


def details_of(error: errors.ApiError) -> Details:
    """Return what the request log has of an error."""
    return Details(error.code, error.message_id)


def as_api_error(exception: Exception) -> errors.ApiError:
    """Return the error of the contract for an exception; unexpected ones are logged here."""
    match exception:
        case errors.ApiError():
            return exception
        case drf.MethodNotAllowed():
            return errors.MethodNotAllowed()
        case drf.UnsupportedMediaType():
            return errors.UnsupportedMediaType()
        case drf.NotAuthenticated() | drf.AuthenticationFailed() | drf.PermissionDenied():
            return errors.Unauthorized(headers={"WWW-Authenticate": 'Bearer realm="rme"'})
        case Http404() | drf.NotFound():
            return errors.NotFound()
        case drf.ParseError() | SuspiciousOperation():
            return errors.InvalidPayload("The request cannot be read.")
        case Error() if availability.is_unavailable(exception):
            log.error("database.away", exc_info=exception)
            availability.count_failure(exception)
            availability.discard(exception)
            return errors.Unavailable(headers={"Retry-After": "5"})
    log.error("request.failed", exc_info=exception)
    return errors.InternalError()


def exception_handler(exception: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """Return the response for an exception of a REST view (REST framework's hook)."""
    error = as_api_error(exception)
    if isinstance(error, errors.MethodNotAllowed):
        error.headers["Allow"] = ", ".join(context["view"].allowed_methods)
    return error_response(error, id_of(context["request"]._request))


class JsonView(APIView):
    """Base of views that only return JSON."""

    def perform_content_negotiation(
        self, request: Request, force: bool = False
    ) -> tuple[BaseRenderer, str]:
        """Return the JSON renderer whatever `Accept` says: there is no other."""
        return JsonRenderer(), JsonRenderer.media_type


class ApiView(JsonView):
    """Base of the REST views: unknown query parameters are refused."""

    http_method_names = ["get", "post", "delete", "head"]
    query_parameters: Mapping[str, Iterable[str]] = {}
    """Allowed query parameters by method; a method that is not named allows none."""
    counted_as: ClassVar[str] = ""
    """The kind of calls with rate limits of their own; empty: those of the application's mode."""

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        super().initial(request, *args, **kwargs)
        if request.method not in self.allowed_methods:  # the first error to report
            raise drf.MethodNotAllowed(request.method or "")
        known = set(self.query_parameters.get(request.method or "", ()))
        query = request._request.GET
        unknown = sorted(set(query) - known)
        if unknown:
            raise errors.InvalidPayload(
                "Unknown query parameter: " + ", ".join(unknown),
                details=[errors.Detail(name, "unknown query parameter") for name in unknown],
            )
        for name in query:
            if len(query.getlist(name)) > 1:
                raise errors.InvalidPayload.at(name, "given more than once")
            if "\x00" in query[name]:
                raise errors.InvalidPayload.at(name, "must not contain NUL characters")
