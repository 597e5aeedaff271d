"""The endpoint of provider callbacks: one path for all providers, which names the account.

A callback that is not authentic is not read. An authentic one is stored and answered at once,
whatever it contains.
"""

import structlog
from django.db import Error
from django.http import HttpRequest, HttpResponse

from messaging.feedback import callback_log, callbacks, tasks
from rme.core.db import availability, clock
from rme.core.errors import ApiError
from rme.core.outbound import outbound_transport
from rme.core.provider import CallbackRequest
from rme.tenants import organizations

log = structlog.get_logger(__name__)

LIMIT = 1024 * 1024
"""Bytes of a body; email services report many events at once."""


def receive(request: HttpRequest, public_id: str) -> HttpResponse:
    """Receive a callback: 200 (also if repeated), 403 (not authentic) or 404 (no such account)."""
    if request.method not in ("GET", "POST"):
        return _answer(405, Allow="GET, POST")
    length = request.META.get("CONTENT_LENGTH") or ""
    if length.isdecimal() and int(length) > LIMIT:
        return _answer(413)
    try:
        return _store(request, public_id)
    except Error as error:
        if not availability.is_unavailable(error):
            raise
        log.error("database.away", exc_info=error)  # noqa: TRY400 (an answer, not a fault)
        availability.discard(error)
        return _answer(503, **{"Retry-After": "5"})


def _store(request: HttpRequest, public_id: str) -> HttpResponse:
    account = callbacks.find_account(public_id)
    if account is None:
        return _answer(404)
    organizations.require_served(account.organization_id)
    callback = CallbackRequest(
        url=account.url,
        method=str(request.method),
        query=request.META.get("QUERY_STRING", "").replace("\x00", ""),
        headers={name.lower(): value for name, value in request.headers.items()},
        body=request.read(LIMIT + 1),
        received_at=clock.now(),
    )
    if len(callback.body) > LIMIT:
        return _answer(413)
    transport = outbound_transport()
    if not account.provider.is_authentic(callback, transport):
        log.warning("callback.refused", account_id=account.account_id)
        callback_log.note_refused(account.organization_id, account.account_id, callback)
        return _answer(403)
    account.provider.confirm(callback, transport)
    if callbacks.store(account, callback):
        tasks.request_callbacks()
    return _answer(200)


def render_error(request: HttpRequest, error: ApiError) -> HttpResponse:
    """Build the response to an error before the view: no text either."""
    return _answer(error.status, **error.headers)


def _answer(status: int, **headers: str) -> HttpResponse:
    # Without a body: some services forward the answer to the sender of an SMS.
    return HttpResponse(status=status, content_type="text/plain", headers=headers)
