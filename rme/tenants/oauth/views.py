"""The endpoints for tokens, revocation, introspection and discovery.

Every response, errors included, is JSON in the shape of RFC 6749 §5.2 and is never cached.
"""

from collections.abc import Callable, Mapping
from functools import cache
from urllib.parse import parse_qsl

import orjson
import structlog
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.views.decorators.csrf import csrf_exempt
from oauthlib.oauth2.rfc6749 import errors

from rme.core.db import availability
from rme.core.errors import ApiError
from rme.core.http.edge import address_of
from rme.tenants.oauth import throttle
from rme.tenants.oauth.server import ADDRESS, JWT_BEARER, Server
from rme.tenants.oauth.tokens import SCOPE

log = structlog.get_logger(__name__)

BODY_LIMIT = 64 * 1024
FIELDS_LIMIT = 50

Pairs = list[tuple[str, str]]
EndpointResponse = tuple[Mapping[str, str], str, int]
View = Callable[[HttpRequest], HttpResponse]


@cache
def server() -> Server:
    """Return this process's server; settings are read once."""
    return Server()


def _endpoint(name: str) -> View:
    """Return a view for one of oauthlib's endpoints: a POST of a form, rate-limited, not cached."""

    @csrf_exempt
    def view(request: HttpRequest) -> HttpResponse:
        if request.method != "POST":
            return _wrong_method("POST")
        try:
            headers, body, status = _call(name, request)
        except errors.OAuth2Error as error:
            headers, body, status = error.headers, error.json, error.status_code
        except ApiError as error:  # the organization is elsewhere, or is being moved
            return render_error(request, error)
        except Exception as error:
            if availability.is_unavailable(error):
                log.exception("database.away")
                availability.discard(error)
                headers, body, status = {"Retry-After": "5"}, _json("temporarily_unavailable"), 503
            else:
                log.exception("oauth.failed")
                headers, body, status = {}, _json("server_error"), 500
        response = _response(body, status)
        if "Retry-After" in headers:
            response["Retry-After"] = headers["Retry-After"]
        if status == 401 and _is_basic(request):
            response["WWW-Authenticate"] = 'Basic realm="rme"'
        return response

    return view


def _call(name: str, request: HttpRequest) -> EndpointResponse:
    address = address_of(request)
    throttle.count_call(address)
    form = _form(request)
    headers = {ADDRESS: address}
    if authorization := request.headers.get("Authorization"):
        headers["Authorization"] = authorization
    result: EndpointResponse = getattr(server(), name)(request.path, "POST", form, headers)
    return result


def _form(request: HttpRequest) -> Pairs:
    """Parse the form: each parameter once, UTF-8, no NUL. Raise InvalidRequestError."""
    if request.META.get("QUERY_STRING"):
        raise errors.InvalidRequestError("parameters belong in the body, not in the address")
    if request.content_type != "application/x-www-form-urlencoded":
        raise errors.InvalidRequestError("the body must be application/x-www-form-urlencoded")
    try:
        if int(request.META.get("CONTENT_LENGTH") or 0) > BODY_LIMIT:
            raise errors.InvalidRequestError("the body is too large")
        pairs = parse_qsl(
            request.body.decode("utf-8"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=FIELDS_LIMIT,
        )
    except (RequestDataTooBig, UnreadablePostError, ValueError):
        raise errors.InvalidRequestError("the body cannot be read") from None
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise errors.InvalidRequestError("a parameter is given twice")
    if any("\0" in part for pair in pairs for part in pair):
        raise errors.InvalidRequestError("a parameter has a NUL character")
    return pairs


def _is_basic(request: HttpRequest) -> bool:
    """Return whether the request uses HTTP Basic; only then a 401 names it (RFC 6749 §5.2)."""
    return request.headers.get("Authorization", "").partition(" ")[0].lower() == "basic"


def _response(body: str, status: int) -> HttpResponse:
    response = HttpResponse(body, status=status, content_type="application/json")
    response["Cache-Control"], response["Pragma"] = "no-store", "no-cache"
    if not body:  # a revocation has an empty response (RFC 7009 §2.2)
        del response["Content-Type"]
    return response


def _json(error: str) -> str:
    return orjson.dumps({"error": error}).decode()


def _wrong_method(allowed: str) -> HttpResponse:
    error = errors.InvalidRequestError(f"the method must be {allowed.partition(',')[0]}")
    response = _response(error.json, 405)
    response["Allow"] = allowed
    return response


def render_error(request: HttpRequest, error: ApiError) -> HttpResponse:
    """Return an error of the middleware in the shape of RFC 6749 §5.2, which has few codes."""
    if error.status in (421, 503):
        body, status = _json("temporarily_unavailable"), error.status
    elif error.status >= 500:
        body, status = _json("server_error"), 500
    else:
        body, status = errors.InvalidRequestError(error.message).json, 400
    response = _response(body, status)
    for name, value in error.headers.items():
        response[name] = value
    return response


token = _endpoint("create_token_response")
revoke = _endpoint("create_revocation_response")
introspect = _endpoint("create_introspect_response")


@csrf_exempt
def metadata(request: HttpRequest) -> HttpResponse:
    """Return the metadata of the authorization server (RFC 8414 §2)."""
    if request.method not in ("GET", "HEAD"):
        return _wrong_method("GET, HEAD")
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
