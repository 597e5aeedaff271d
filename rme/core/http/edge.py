"""What is checked of every request before its view: its Host, how it travelled, and its size.

`RequestMiddleware` is the one caller, so that no route can forget these. A refusal costs neither a
read of the body nor a statement, save that an upload is allowed by who is logged in.
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
"""What is asked by address, and decides for itself who may read it."""
SECRET_PREFIXES = ("/rme/v1/", "/services/")
"""Where programs send secrets; the bot service refuses by its own contract (`bot.callers`)."""
FORM_OVERHEAD = 64 * 1024
"""What a form adds to the file in it: boundaries and the other fields."""

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
    """Check whether a call that should have come by TLS did not.

    Behind a proxy that ends TLS, its own word counts. With an https `BASE_URL` and no such proxy
    only what never left this machine may be plain.
    """
    if settings.TLS_PROXY:
        return proxies.scheme(request.META) not in ("", "https")
    if not settings.BASE_URL.startswith("https://") or request.is_secure():
        return False
    return not is_from_here(request)


def is_from_here(request: HttpRequest) -> bool:
    """Check whether a request came from this machine, so far as its connection tells."""
    return is_loopback(str(request.META.get("REMOTE_ADDR", "")))


def is_loopback(address: str) -> bool:
    """Check whether an address is this machine's own."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def files_allowed(view: Any, allowed: Callable[[HttpRequest], bool], limit: int) -> None:
    """Let a view take files of up to `limit` bytes from those whom `allowed` lets."""
    view.takes_files = (allowed, limit + FORM_OVERHEAD)


def bound_body(request: HttpRequest, view: Any) -> None:
    """Raise PayloadTooLarge for a body beyond what the view takes; nothing of it was read.

    Files are dropped unread (FILE_UPLOAD_HANDLERS is empty) but where a view takes them, and there
    from those alone who may send them.
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
