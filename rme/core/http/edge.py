"""Checks of every request before its view: its Host, whether it used TLS, and its size.

Only `RequestMiddleware` calls `check` and `bound_body`, so that they hold for every
route. A refusal reads neither the body nor the database, but for uploads, which need the logged-in
user.

The client's address and the scheme are those that the proxy in front of us reports. WSGI has one
name for `X-Forwarded-For` and `X_Forwarded_For`, and the web server shows no other: a proxy that
passes headers with underscores lets its clients overwrite the header that it sets. `Forwarded`
(RFC 7239) has no hyphen, so no other header can be taken for it.
"""

from collections.abc import Callable, Mapping, MutableMapping
from functools import lru_cache
from io import BytesIO
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.files.uploadhandler import MemoryFileUploadHandler, TemporaryFileUploadHandler
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest

from rme.core import errors
from rme.core.http import forwarded
from rme.core.http.parsing import BODY_LIMIT

FORWARDED = "forwarded"
"""The value of `TLS_PROXY` with which only `Forwarded` is trusted."""

_UNDERSCORED = ("HTTP_CONTENT_LENGTH", "HTTP_CONTENT_TYPE")
"""Names of `Content_Length` and `Content_Type`; those with hyphens have no `HTTP_` prefix."""
_FORWARDING = (
    *("HTTP_X_FORWARDED", "HTTP_FORWARDED", "HTTP_VIA", "HTTP_X_ORIGINAL", "HTTP_X_REAL_IP"),
    *("HTTP_CF_", "HTTP_TRUE_CLIENT_IP", "HTTP_X_CLIENT", "HTTP_X_CLUSTER_CLIENT_IP"),
)
ANY_HOST = frozenset(
    {
        *("/livez", "/readyz", "/metrics"),
        *("/cell/owner", "/cell/organizations", "/cell/log-out", "/cell/pauses"),
    }
)
"""Requested by IP address; each of them decides who may read it."""
SECRET_PREFIXES = ("/rme/v1/", "/services/")
"""Paths to which programs send secrets. Services with other errors refuse them themselves."""
FORM_OVERHEAD = 64 * 1024
"""The bytes that a form adds to the file in it: boundaries and the other fields."""

IN_CLEAR = (
    "This call came by plain HTTP, so that others may have read the secret in it: replace the "
    "secret, and call by https."
)


def check(request: HttpRequest) -> None:
    """Raise InvalidPayload for a Host that is not ours, Unauthorized for secrets in clear."""
    path = request.path_info
    if path in ANY_HOST:
        return
    try:
        request.get_host()
    except DisallowedHost:
        raise errors.InvalidPayload.at("Host", "no host of this deployment") from None
    if path.startswith(SECRET_PREFIXES) and came_in_clear(request):
        raise errors.Unauthorized(IN_CLEAR)


_CHECKED = (
    *("HTTP_HOST", "SERVER_NAME", "SERVER_PORT", "REMOTE_ADDR", "wsgi.url_scheme"),
    *("HTTP_FORWARDED", "HTTP_X_FORWARDED_PROTO"),
)
"""What `check` reads of a request, besides its path."""


def passes(environ: Mapping[str, object]) -> bool:
    """Return whether `check` lets a call of the REST API pass."""
    return _passes(tuple(map(environ.get, _CHECKED)))


@lru_cache(maxsize=1024)
def _passes(values: tuple[object, ...]) -> bool:
    meta = {name: value for name, value in zip(_CHECKED, values, strict=True) if value is not None}
    normalize(meta)
    request = WSGIRequest(
        {**meta, "REQUEST_METHOD": "POST", "PATH_INFO": "/rme/v1/", "wsgi.input": BytesIO()}
    )
    try:
        check(request)
    except errors.ApiError:
        return False
    return True


def came_in_clear(request: HttpRequest) -> bool:
    """Return whether a call came without TLS that should have used it.

    Behind a proxy that ends TLS, its header decides. With an https `BASE_URL` and no such proxy,
    only calls from this machine may be plain.
    """
    if settings.TLS_PROXY:
        return scheme(request.META) not in ("", "https")
    if not settings.BASE_URL.startswith("https://") or request.is_secure():
        return False
    return not is_from_here(request)


def is_from_here(request: HttpRequest) -> bool:
    """Return whether the connection of a request comes from this machine."""
    return forwarded.is_loopback(str(request.META.get("REMOTE_ADDR", "")))


def files_allowed(view: Any, allowed: Callable[[HttpRequest], bool], limit: int) -> None:
    """Let a view take files of up to `limit` bytes in requests for which `allowed` is true."""
    view.takes_files = (allowed, limit + FORM_OVERHEAD)


def bound_body(request: HttpRequest, view: object) -> None:
    """Raise PayloadTooLarge for a body larger than the view takes, before it is read.

    Files are dropped unread (FILE_UPLOAD_HANDLERS is empty), unless the view takes files and the
    user may send them.
    """
    limit = BODY_LIMIT
    allowed, largest = getattr(view, "takes_files", (None, 0))
    if allowed is not None and request.method == "POST" and allowed(request):
        limit = largest
        request.upload_handlers = [
            MemoryFileUploadHandler(request),
            TemporaryFileUploadHandler(request),
        ]
    length = str(request.META.get("CONTENT_LENGTH") or "")
    if length.isdecimal() and int(length) > limit:
        raise errors.PayloadTooLarge(
            None if limit == BODY_LIMIT else f"The file is larger than {limit // 1024**2} MB."
        )


# --- proxies --------------------------------------------------------------------------------------


def normalize(meta: MutableMapping[str, object]) -> None:
    """Store the scheme of a request where Django reads it, and drop headers with underscores."""
    for name in _UNDERSCORED:
        meta.pop(name, None)
    if settings.TLS_PROXY:
        meta["wsgi.url_scheme"] = "https" if scheme(meta) == "https" else "http"


def is_forwarded(meta: Mapping[str, object]) -> bool:
    """Return whether any header shows that a proxy forwarded the request."""
    return any(name.startswith(_FORWARDING) for name in meta)


def scheme(meta: Mapping[str, object]) -> str:
    """Return the scheme by which the request reached our proxy; "" where it sends none."""
    if settings.TLS_PROXY_HEADER == FORWARDED:
        return _pairs(meta).get("proto", "").lower()
    return _last(meta, "HTTP_X_FORWARDED_PROTO").lower()


def address_of(request: HttpRequest) -> str:
    """Return the client's address. A proxy's headers are trusted only with `TLS_PROXY`."""
    meta = request.META
    direct = str(meta.get("REMOTE_ADDR", ""))
    if not settings.TLS_PROXY:
        return direct
    if settings.TLS_PROXY_HEADER == FORWARDED:
        return forwarded.node(_pairs(meta).get("for", "")) or direct
    return _last(meta, "HTTP_X_FORWARDED_FOR")[:64] or direct


def _last(meta: Mapping[str, object], name: str) -> str:
    return forwarded.last_entry(str(meta.get(name, "")))


def _pairs(meta: Mapping[str, object]) -> dict[str, str]:
    return forwarded.pairs(str(meta.get("HTTP_FORWARDED", "")))
