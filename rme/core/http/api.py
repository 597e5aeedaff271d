"""The frame of the REST API: request ids, JSON in and out, and exceptions turned into responses.

The one place where an exception becomes a response. Views raise `rme.core.errors`; any other
exception is logged with the request id, and the caller gets INTERNAL_ERROR.
"""

import sys
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, cast

import orjson
import structlog
import uuid_utils
from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.db import Error
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.urls import Resolver404, resolve
from django.utils.module_loading import import_string
from rest_framework import exceptions as drf
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from rme.core import errors, logs
from rme.core.db import availability
from rme.core.http import edge, request_records
from rme.core.http.pages import error_page
from rme.core.http.parsing import JsonRenderer
from rme.core.http.request_records import (
    NO_DETAILS,
    NO_PATH,
    QUIET,
    REST_PREFIX,
    AnsweredRequest,
    Details,
    Route,
)
from rme.core.http.serving.gateway import REFUSAL
from rme.core.process import admission
from rme.core.telemetry import tracing
from rme.core.telemetry.spans import Span, SpanKind, Tracer

log = structlog.get_logger(__name__)

METHODS = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"})

ErrorRenderer = Callable[[HttpRequest, errors.ApiError], HttpResponse]


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
            if not admission.starts_again(request.META):
                record_request(request, response, time.perf_counter() - started, span)
        return response

    def _answer(self, request: HttpRequest, identifier: str) -> HttpResponse:
        try:
            edge.check(request)
            if isinstance(refusal := request.META.get(REFUSAL), errors.ApiError):
                raise refusal
        except errors.ApiError as error:
            response = refuse(request, error)
        else:
            response = self.get_response(request)
        if response.status_code == 404 and is_rest(request) and not is_json(response):
            response = error_response(errors.NotFound("This path doesn't exist."), identifier)
        response["X-Request-Id"] = identifier
        if not response.streaming and not response.has_header("Content-Length"):
            response["Content-Length"] = str(len(response.content))
        return response

    def process_view(
        self, request: HttpRequest, view: object, args: object, kwargs: object
    ) -> HttpResponse | None:
        """Refuse a body that is too large for its route before anything reads it."""
        assert request.resolver_match is not None  # it names the view
        try:
            name = request.resolver_match.view_name
            edge.bound_body(request, uploads(settings.ROOT_URLCONF).get(name))
        except errors.ApiError as error:
            return refuse(request, error)
        return None

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Answer for views that are not REST framework's; `handler500` answers for pages."""
        match = request.resolver_match
        if is_rest(request) or (match and match.route in error_renderers(settings.ROOT_URLCONF)):
            return refuse(request, as_api_error(exception))
        return refuse(request, exception) if isinstance(exception, errors.ApiError) else None


@cache
def error_renderers(urlconf: str) -> Mapping[str, ErrorRenderer]:
    """Return `error_renderers` of the root URLconf: what builds the errors of a route."""
    table: Mapping[str, str] = getattr(import_module(urlconf), "error_renderers", {})
    return {route: import_string(name) for route, name in table.items()}


@cache
def uploads(urlconf: str) -> Mapping[str, edge.Upload]:
    """Return `uploads` of the root URLconf: the routes that take files, by name."""
    table: Mapping[str, edge.Upload] = getattr(import_module(urlconf), "uploads", {})
    return table


def refuse(request: HttpRequest, error: errors.ApiError) -> HttpResponse:
    """Return an error in the shape of its path: the API's JSON, the route's own, or a page."""
    if is_rest(request):
        return error_response(error, id_of(request))
    try:
        route = (request.resolver_match or resolve(request.path_info)).route
    except Resolver404:
        return error_page(request, error)
    return error_renderers(settings.ROOT_URLCONF).get(route, error_page)(request, error)


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


def record_request(
    request: HttpRequest, response: HttpResponse, seconds: float, span: Span | None = None
) -> None:
    """Log and count a request by the route of its path, because the path itself holds data."""
    match = request.resolver_match
    method = request.method if request.method in METHODS else "(other)"
    details = response.details if isinstance(response, ApiResponse) else NO_DETAILS
    if details is NO_DETAILS and match is not None and response.status_code < 400:
        details = Details(message_id=match.kwargs.get("message_id"))
    answered = AnsweredRequest(
        response.status_code,
        seconds,
        {"request_id": id_of(request), **logs.caller.get()},
        details,
        span,
        "Prefer" in request.headers,
    )
    request_records.record(Route(method, f"/{match.route}" if match else NO_PATH), [answered])


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

    def check_permissions(self, request: Request) -> None:
        """Check nothing yet: `check_throttles` does, since refused calls count too."""

    def check_throttles(self, request: Request) -> None:
        """Count the call, and then check what its caller may do."""
        super().check_throttles(request)
        super().check_permissions(request)

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        super().initial(request, *args, **kwargs)
        if request.method not in self.allowed_methods:  # the first error to report
            raise drf.MethodNotAllowed(request.method or "")
        require_query(request._request.GET, self.query_parameters.get(request.method or "", ()))


def require_query(query: QueryDict, allowed: Iterable[str]) -> None:
    """Raise InvalidPayload for a parameter that is unknown, repeated, or holds NUL characters."""
    unknown = sorted(set(query) - set(allowed))
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
