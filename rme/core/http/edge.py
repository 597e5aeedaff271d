"""Checks of every request before its view: its Host, whether it used TLS, and its size.

Only `RequestMiddleware` calls these, so that they hold for every route. A refusal reads neither the
body nor the database, but for uploads, which need the logged-in user.
"""

from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.files.uploadhandler import MemoryFileUploadHandler, TemporaryFileUploadHandler
from django.http import HttpRequest

from rme.core import errors
from rme.core.http import proxies
from rme.core.http.json import BODY_LIMIT

ANY_HOST = frozenset({"/livez", "/readyz", "/metrics"})
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


def came_in_clear(request: HttpRequest) -> bool:
    """Return whether a call came without TLS that should have used it.

    Behind a proxy that ends TLS, its header decides. With an https `BASE_URL` and no such proxy,
    only calls from this machine may be plain.
    """
    if settings.TLS_PROXY:
        return proxies.scheme(request.META) not in ("", "https")
    if not settings.BASE_URL.startswith("https://") or request.is_secure():
        return False
    return not is_from_here(request)


def is_from_here(request: HttpRequest) -> bool:
    """Return whether the connection of a request comes from this machine."""
    return is_loopback(str(request.META.get("REMOTE_ADDR", "")))


def is_loopback(address: str) -> bool:
    """Return whether an address is a loopback address."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


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
