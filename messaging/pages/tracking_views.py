"""Opens and clicks: an image of no size, and links that lead on.

GET only tells; it never unsubscribes anyone, since scanners follow every link. Telling never keeps
a person waiting, and a database that is away loses the telling, not the way.
"""

import base64

import structlog
from django.db import Error
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from messaging.content import tracked_links
from messaging.content.links import BadLink
from messaging.content.tracked_links import Target
from messaging.feedback import tasks, tracking
from rme.core.automated_clients import is_machine
from rme.core.errors import ApiError
from rme.core.http.api import set_error_renderer

log = structlog.get_logger(__name__)

GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
HEADERS = {
    "Cache-Control": "no-store, private",
    "Referrer-Policy": "no-referrer",  # the address says which message it was
    "X-Robots-Tag": "noindex",
}


@csrf_exempt
@require_safe
def show_image(request: HttpRequest, token: str) -> HttpResponse:
    """Give the image; also when it is too late to tell anything. 404 for what we did not sign."""
    try:
        target = tracked_links.read(tracked_links.OPEN, token)
    except BadLink:
        return _gone()
    if tracking.is_known(target.delivery_id):
        _tell(request, target, tracked_links.OPEN)
    return HttpResponse(GIF, content_type="image/gif", headers=HEADERS)


@csrf_exempt
@require_safe
def lead_on(request: HttpRequest, token: str) -> HttpResponse:
    """Lead on to where the token says. 404 for what we did not sign, or too long ago."""
    try:
        target = tracked_links.read(tracked_links.CLICK, token)
    except BadLink:
        return _gone()
    if not target.url or not tracking.is_known(target.delivery_id):
        return _gone()
    _tell(request, target, tracked_links.CLICK)
    return HttpResponseRedirect(target.url, headers=HEADERS)


def _tell(request: HttpRequest, target: Target, kind: str) -> None:
    try:
        news = tracking.store(target.delivery_id, kind, machine=_by_machine(request))
    except Error as error:
        log.warning("tracking.lost", error=type(error).__name__)
        return
    if news:
        tasks.request_callbacks()


def _by_machine(request: HttpRequest) -> bool:
    purpose = request.headers.get("Sec-Purpose") or request.headers.get("Purpose", "")
    return (
        request.method == "HEAD"
        or "prefetch" in purpose.lower()
        or is_machine(request.headers.get("User-Agent", ""))
    )


def _render_error(request: HttpRequest, error: ApiError) -> HttpResponse:
    headers = {**HEADERS, **error.headers}
    return HttpResponse(status=error.status, content_type="text/plain", headers=headers)


set_error_renderer(_render_error, show_image, lead_on)


def _gone() -> HttpResponse:
    return HttpResponse(status=404, content_type="text/plain", headers=HEADERS)
