"""Open and click tracking: an image of one pixel, and links that redirect.

A request is only recorded; it never unsubscribes anyone, since scanners follow every link. If the
database is unavailable, or the organization is paused, the record is lost and the redirect still
works.
"""

import base64

import structlog
from django.db import Error
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from messaging.content import tracked_links
from messaging.content.tracked_links import TrackedTarget
from messaging.feedback import tasks, tracking
from messaging.links import BadLink
from rme.core.errors import ApiError, Unavailable
from rme.core.provider.automated_clients import is_machine

log = structlog.get_logger(__name__)

GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
HEADERS = {
    "Cache-Control": "no-store, private",
    "Referrer-Policy": "no-referrer",  # the URL identifies the message
    "X-Robots-Tag": "noindex",
}


@csrf_exempt
@require_safe
def show_image(request: HttpRequest, token: str) -> HttpResponse:
    """Record an open and return the image, also if the message is old; 404 for a bad signature."""
    try:
        target = tracked_links.read(tracked_links.OPEN, token)
    except BadLink:
        return _not_found()
    if tracking.is_recent(target.delivery_id):
        _record(request, target, tracked_links.OPEN)
    return HttpResponse(GIF, content_type="image/gif", headers=HEADERS)


@csrf_exempt
@require_safe
def redirect(request: HttpRequest, token: str) -> HttpResponse:
    """Record a click and redirect to its target; 404 for a bad signature or an old message."""
    try:
        target = tracked_links.read(tracked_links.CLICK, token)
    except BadLink:
        return _not_found()
    if not target.url or not tracking.is_recent(target.delivery_id):
        return _not_found()
    _record(request, target, tracked_links.CLICK)
    return HttpResponseRedirect(target.url, headers=HEADERS)


def _record(request: HttpRequest, target: TrackedTarget, kind: str) -> None:
    try:
        is_new = tracking.store(target.delivery_id, kind, machine=_by_machine(request))
    except (Error, Unavailable) as error:
        log.warning("tracking.lost", error=type(error).__name__)
        return
    if is_new:
        tasks.request_callbacks()


def _by_machine(request: HttpRequest) -> bool:
    purpose = request.headers.get("Sec-Purpose") or request.headers.get("Purpose", "")
    return (
        request.method == "HEAD"
        or "prefetch" in purpose.lower()
        or is_machine(request.headers.get("User-Agent", ""))
    )


def render_error(request: HttpRequest, error: ApiError) -> HttpResponse:
    headers = {**HEADERS, **error.headers}
    return HttpResponse(status=error.status, content_type="text/plain", headers=headers)


def _not_found() -> HttpResponse:
    return HttpResponse(status=404, content_type="text/plain", headers=HEADERS)
