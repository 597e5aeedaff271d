"""Token, revocation, introspection and discovery, as programs call them."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

import orjson
import structlog
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from oauthlib.oauth2.rfc6749 import errors

from rme.core.limits import Limit, limiter
from rme.tenants.oauth.server import JWT_BEARER, SCOPE, Server

log = structlog.get_logger(__name__)

BODY_LIMIT = 64 * 1024
FIELDS_LIMIT = 50

PER_ADDRESS = Limit(settings.TOKENS_PER_MINUTE, 60)
PER_CLIENT = Limit(settings.TOKENS_PER_MINUTE, 60)
FAILURES = Limit(settings.TOKEN_FAILURES_PER_MINUTE, 60)

Pairs = list[tuple[str, str]]
Answer = tuple[Mapping[str, str], str, int]


@cache
def server() -> Server:
    return Server()


def _error(error: errors.OAuth2Error, status: int | None = None) -> HttpResponse:
    response = HttpResponse(
        error.json, status=status or error.status_code, content_type="application/json"
    )
    response["Cache-Control"], response["Pragma"] = "no-store", "no-cache"
    return response


def _form(request: HttpRequest) -> Pairs:
    """Read the form strictly: each parameter once, UTF-8, no NUL. Raises InvalidRequestError."""
    if request.content_type != "application/x-www-form-urlencoded":
        raise errors.InvalidRequestError("the body must be application/x-www-form-urlencoded")
    try:
        if int(request.headers.get("Content-Length") or 0) > BODY_LIMIT:
            raise errors.InvalidRequestError("the body is too large")
        pairs = parse_qsl(
            request.body.decode("utf-8"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=FIELDS_LIMIT,
        )
    except (RequestDataTooBig, ValueError):
        raise errors.InvalidRequestError("the body cannot be read") from None
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise errors.InvalidRequestError("a parameter is given twice")
    if any("\0" in part for pair in pairs for part in pair):
        raise errors.InvalidRequestError("a parameter has a NUL character")
    return pairs


def _endpoint(call: Callable[[HttpRequest, Pairs, dict[str, str]], Answer]) -> Any:
    """Make a view of one of oauthlib's endpoints: POST, a form, throttled, never cached."""

    @csrf_exempt
    def view(request: HttpRequest) -> HttpResponse:
        if request.method != "POST":
            response = _error(errors.InvalidRequestError("the method must be POST"), 405)
            response["Allow"] = "POST"
            return response
        address = request.META.get("REMOTE_ADDR", "")
        limited = limiter.take(f"token:address:{address}", PER_ADDRESS)
        failures = limiter.take(f"token:failures:{address}", FAILURES, cost=0)
        if not (limited.allowed and failures.allowed):
            return _throttled(max(limited.retry_after, failures.retry_after))
        try:
            form = _form(request)
            client_id = dict(form).get("client_id", "")
            if client_id and not _client_may(client_id):
                return _throttled(1)
            authorization = request.headers.get("Authorization")
            headers = {"Authorization": authorization} if authorization else {}
            answered, body, status = call(request, form, headers)
        except errors.OAuth2Error as error:
            answered, body, status = {}, error.json, error.status_code
        if status == 401:
            limiter.take(f"token:failures:{address}", FAILURES)
        response = HttpResponse(body, status=status, content_type="application/json")
        response["Cache-Control"], response["Pragma"] = "no-store", "no-cache"
        if status == 401 and authorization_is_basic(request):
            response["WWW-Authenticate"] = 'Basic realm="rme"'
        return response

    return view


def _client_may(client_id: str) -> bool:
    return limiter.take(f"token:client:{client_id[:64]}", PER_CLIENT).allowed


def authorization_is_basic(request: HttpRequest) -> bool:
    """Say whether HTTP Basic was used: only then is it named in the answer (RFC 6749 §5.2)."""
    return request.headers.get("Authorization", "").lower().startswith("basic")


def _throttled(retry_after: int) -> HttpResponse:
    response = HttpResponse(
        orjson.dumps({"error": "temporarily_unavailable", "error_description": "too many calls"}),
        status=429,
        content_type="application/json",
    )
    response["Retry-After"] = str(max(1, retry_after))
    response["Cache-Control"] = "no-store"
    return response


def _token(request: HttpRequest, form: Pairs, headers: dict[str, str]) -> Answer:
    return server().create_token_response(request.path, "POST", form, headers)


def _revoke(request: HttpRequest, form: Pairs, headers: dict[str, str]) -> Answer:
    answered, body, status = server().create_revocation_response(
        request.path, "POST", form, headers
    )
    return answered, body or "", status


def _introspect(request: HttpRequest, form: Pairs, headers: dict[str, str]) -> Answer:
    return server().create_introspect_response(request.path, "POST", form, headers)


token = _endpoint(_token)
revoke = _endpoint(_revoke)
introspect = _endpoint(_introspect)


@require_safe
def metadata(request: HttpRequest) -> HttpResponse:
    """Describe the authorization server (RFC 8414)."""
    base = f"{settings.BASE_URL}/services/oauth2"
    methods = ["client_secret_post", "client_secret_basic"]
    description = {
        "issuer": settings.BASE_URL,
        "token_endpoint": f"{base}/token",
        "token_endpoint_auth_methods_supported": methods,
        "revocation_endpoint": f"{base}/revoke",
        "revocation_endpoint_auth_methods_supported": methods,
        "introspection_endpoint": f"{base}/introspect",
        "introspection_endpoint_auth_methods_supported": methods,
        "grant_types_supported": ["client_credentials", JWT_BEARER],
        "response_types_supported": [],
        "scopes_supported": [SCOPE],
        "service_documentation": f"{settings.BASE_URL}/rme/v1/docs",
    }
    return HttpResponse(orjson.dumps(description), content_type="application/json")
