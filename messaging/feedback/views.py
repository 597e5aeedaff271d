"""The way in for providers: one path for all of them, which names the account.

What is not signed is not read. What is signed is kept and answered at once, whatever it says.
"""

import structlog
from django.db import Error
from django.http import HttpRequest, HttpResponse

from messaging.feedback import callbacks, tasks
from rme.core.db import availability, clock
from rme.core.errors import ApiError
from rme.core.http.api import set_error_renderer
from rme.core.provider import CallbackRequest

log = structlog.get_logger(__name__)

LIMIT = 1024 * 1024
"""Email services report many events at once."""


def receive(request: HttpRequest, public_id: str) -> HttpResponse:
    """Take a provider's call: 200, also for what was there; 403 unsigned; 404 nobody's account."""
    if request.method not in ("GET", "POST"):
        return _answer(405, Allow="GET, POST")
    length = request.META.get("CONTENT_LENGTH") or ""
    if length.isdecimal() and int(length) > LIMIT:
        return _answer(413)
    try:
        return _take(request, public_id)
    except Error as error:
        if not availability.is_unavailable(error):
            raise
        log.error("database.away", exc_info=error)  # noqa: TRY400 (an answer, not a fault)
        availability.discard(error)
        return _answer(503, **{"Retry-After": "5"})


def _take(request: HttpRequest, public_id: str) -> HttpResponse:
    whose = callbacks.find_account(public_id)
    if whose is None:
        return _answer(404)
    callback = CallbackRequest(
        url=whose.url,
        method=str(request.method),
        query=request.META.get("QUERY_STRING", "").replace("\x00", ""),
        headers={name.lower(): value for name, value in request.headers.items()},
        body=request.read(LIMIT + 1),
        received_at=clock.now(),
    )
    if len(callback.body) > LIMIT:
        return _answer(413)
    if not whose.provider.is_authentic(callback):
        log.warning("callback.refused", account_id=whose.account_id)
        return _answer(403)
    whose.provider.confirm(callback)
    if callbacks.store(whose, callback):
        tasks.request_callbacks()
    return _answer(200)


def _render_error(request: HttpRequest, error: ApiError) -> HttpResponse:
    return _answer(error.status, **error.headers)


set_error_renderer(_render_error, receive)


def _answer(status: int, **headers: str) -> HttpResponse:
    # Without a text: some services send what they are answered on to the person.
    return HttpResponse(status=status, content_type="text/plain", headers=headers)
