"""Checks of every request before its view: its Host, whether it used TLS, and its size.

`RequestMiddleware` calls `check` and `bound_body` for every route, and the frame of sets calls
`check_call`. A refusal reads neither the body nor the database, but for uploads, which need the
logged-in user.

The client's address and the scheme are those that the proxy in front of us reports. WSGI has one
name for `X-Forwarded-For` and `X_Forwarded_For`, and the web server shows no other: a proxy that
passes headers with underscores lets its clients overwrite the header that it sets. `Forwarded`
(RFC 7239) has no hyphen, so no other header can be taken for it.
"""

import codecs
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from functools import lru_cache
from io import BytesIO
from typing import NamedTuple

import structlog
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.files.uploadhandler import MemoryFileUploadHandler, TemporaryFileUploadHandler
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest
from django.http.request import split_domain_port

from rme.core import errors
from rme.core.http import forwarded
from rme.core.http.chunked import INCOMPLETE
from rme.core.http.parsing import BODY_LIMIT

log = structlog.get_logger(__name__)

FORWARDED = "forwarded"
"""The value of `TLS_PROXY` with which only `Forwarded` is trusted."""

_UNDERSCORED = ("HTTP_CONTENT_LENGTH", "HTTP_CONTENT_TYPE")
"""Names of `Content_Length` and `Content_Type`; those with hyphens have no `HTTP_` prefix."""
_FORWARDING = (
    *("HTTP_X_FORWARDED", "HTTP_FORWARDED", "HTTP_VIA", "HTTP_X_ORIGINAL", "HTTP_X_REAL_IP"),
    *("HTTP_CF_", "HTTP_TRUE_CLIENT_IP", "HTTP_X_CLIENT", "HTTP_X_CLUSTER_CLIENT_IP"),
)
ANY_HOST = frozenset({"/livez", "/readyz", "/metrics", *settings.ANY_HOST_PATHS})
"""Requested by IP address; each of them decides who may read it."""
SECRET_PREFIXES = ("/rme/v1/", "/services/")
"""Paths to which programs send secrets. Services with other errors refuse them themselves."""
FORM_OVERHEAD = 64 * 1024
"""The bytes that a form adds to the file in it: boundaries and the other fields."""

IN_CLEAR = (
    "This call came by plain HTTP, so that others may have read the secret in it: replace the "
    "secret, and call by https."
)

NO_ROOM = (
    "The server couldn't store your file. Try again later. If it fails again, ask the people who "
    "run this service to look at its disk."
)


CHARSETS = frozenset({"utf-8", "ascii", "iso8859-1", "iso8859-15", "cp1252"})
"""The charsets of bodies, by Python's names. UTF-16 would hide ASCII from proxies that filter."""
CODINGS = frozenset({"", "identity", "utf-8"})
"""The values of `Content-Encoding` with a body as it is. Some clients name the charset there."""
PORT_LIMIT = 65535


def check(request: HttpRequest) -> None:
    """Refuse ambiguous framing, a foreign Host, NUL in a path of the admin, and secrets in clear.

    Raises NotFound, InvalidPayload, UnsupportedMediaType or Unauthorized.
    """
    path = request.path_info
    if "\0" in path and path.startswith("/admin/"):  # other resources refuse it by themselves
        raise errors.NotFound("This path doesn't exist.")
    _check_framing(request)
    if path in ANY_HOST:
        return
    try:
        request.get_host()
    except DisallowedHost:
        raise errors.InvalidPayload.at("Host", "no host of this deployment") from None
    if path.startswith(SECRET_PREFIXES) and came_in_clear(request):
        raise errors.Unauthorized(IN_CLEAR)


def _check_framing(request: HttpRequest) -> None:
    """Refuse a malformed Host or body, on every path.

    RFC 9112 §3.2 (Host), §6.1 and §7 (transfer codings); RFC 3986 §3.2.3 (port); RFC 9110 §8.4 and
    §15.5.16 (content codings).
    """
    meta = request.META
    if meta.get(INCOMPLETE):
        raise errors.InvalidPayload.at(
            "body", "is incomplete, or its chunked encoding is malformed. Send it again."
        )
    coding = str(meta.get("HTTP_TRANSFER_ENCODING", ""))
    if coding and coding.strip().lower() != "chunked":
        raise errors.InvalidPayload.at(
            "Transfer-Encoding", "only `chunked` is supported. Send the body uncompressed."
        )
    if not CODINGS.issuperset(
        each.strip().lower() for each in str(meta.get("HTTP_CONTENT_ENCODING", "")).split(",")
    ):
        raise _encoded()
    if host := str(meta.get("HTTP_HOST", "")):
        domain, port = split_domain_port(host)
        if not domain or int(port or 0) > PORT_LIMIT:
            raise errors.InvalidPayload.at("Host", "isn't a valid host and port")
    charset = (request.content_params or {}).get("charset", "")
    if charset and not _is_allowed_charset(charset):
        raise errors.UnsupportedMediaType("Send the body in UTF-8.")


def _encoded() -> errors.UnsupportedMediaType:
    detail = errors.Detail("Content-Encoding", "isn't supported. Send the body uncompressed.")
    return errors.UnsupportedMediaType(
        f"{detail.field}: {detail.message}",
        details=[detail],
        headers={"Accept-Encoding": "identity"},  # RFC 7694 §3
    )


@lru_cache(maxsize=64)
def _is_allowed_charset(name: str) -> bool:
    """Return whether bodies may have a charset. We ignore unknown ones, as Django does."""
    try:
        return codecs.lookup(name).name in CHARSETS
    except (LookupError, ValueError):
        return True


_CHECKED = (
    *("HTTP_HOST", "SERVER_NAME", "SERVER_PORT", "REMOTE_ADDR", "wsgi.url_scheme"),
    *("HTTP_FORWARDED", "HTTP_X_FORWARDED_PROTO", "HTTP_TRANSFER_ENCODING", "CONTENT_TYPE"),
    *("HTTP_CONTENT_ENCODING", INCOMPLETE),
)
"""What `check` reads of a request, besides its path."""


def check_call(environ: Mapping[str, object]) -> None:
    """Check a call of the REST API, which no middleware sees. Raises the same as `check`."""
    values = tuple(map(environ.get, _CHECKED))
    if not _passes(values):
        check(_call_of(values))


@lru_cache(maxsize=1024)
def _passes(values: tuple[object, ...]) -> bool:
    try:
        check(_call_of(values))
    except errors.ApiError:
        return False
    return True


def _call_of(values: tuple[object, ...]) -> HttpRequest:
    meta = {name: value for name, value in zip(_CHECKED, values, strict=True) if value is not None}
    normalize(meta)
    return WSGIRequest(
        {**meta, "REQUEST_METHOD": "POST", "PATH_INFO": "/rme/v1/", "wsgi.input": BytesIO()}
    )


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


class FileHandler(TemporaryFileUploadHandler):
    """Stores an uploaded file, unless the disk has no room for it. Raises Unavailable."""

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        try:
            super().receive_data_chunk(raw_data, start)
        except OSError as error:
            log.exception("upload.not_stored")
            with suppress(OSError):
                self.upload_interrupted()  # the exception would keep the file, and the disk full
            raise errors.Unavailable(NO_ROOM) from error


class Upload(NamedTuple):
    """What a route takes besides forms: files of up to `limit` bytes, from whom it is allowed."""

    is_allowed: Callable[[HttpRequest], bool]
    limit: int


def bound_body(request: HttpRequest, upload: Upload | None) -> None:
    """Raise PayloadTooLarge for a body larger than its route takes, before it is read.

    Files are dropped unread (FILE_UPLOAD_HANDLERS is empty), unless the route takes files and the
    user may send them.
    """
    limit = BODY_LIMIT
    if upload and request.method == "POST" and upload.is_allowed(request):
        limit = upload.limit + FORM_OVERHEAD
        request.upload_handlers = [
            MemoryFileUploadHandler(request),
            FileHandler(request),
        ]
    bound_length(request.META, limit)


def bound_length(environ: Mapping[str, object], limit: int) -> None:
    """Raise PayloadTooLarge for a body of more bytes, which was not read."""
    length = str(environ.get("CONTENT_LENGTH") or "")
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
