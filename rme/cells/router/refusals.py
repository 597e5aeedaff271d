"""What the router answers by itself, in the form of the part of the service that was called."""

from dataclasses import dataclass
from html import escape
from http import HTTPStatus
from uuid import uuid4

import orjson

from rme.cells.router.heads import RawHeaders
from rme.cells.router.routing import Area
from rme.core import errors


@dataclass(frozen=True, slots=True)
class RouterRefusal:
    """An answer of the router's own."""

    status: int
    message: str
    retry_after: int | None = None
    reason: str = ""
    """What the metrics and the log call it."""


AWAY = RouterRefusal(
    503, "The cell of this organization cannot be reached right now.", 1, "cell_away"
)
INCOMPLETE = RouterRefusal(503, "Not all cells can be reached right now.", 1, "look_up_incomplete")
BUSY = RouterRefusal(503, "Too many calls are waiting.", 1, "busy")
REPEAT = RouterRefusal(
    503, "The organization has just moved to another cell: repeat the call.", 0, "repeat"
)
LOST = RouterRefusal(
    502,
    "The connection to the cell was lost, and the call may have been taken: repeat it with the "
    "same Idempotency-Key.",
    reason="answer_lost",
)
LOST_READ = RouterRefusal(503, "The connection to the cell was lost.", 1, "answer_lost")
SLOW = RouterRefusal(408, "The body did not arrive in time.", reason="slow_body")
LONG = RouterRefusal(413, "The body is too long.", reason="long_body")
NOT_FOUND = RouterRefusal(404, "This page doesn't exist.", reason="not_found")
BAD_TARGET = RouterRefusal(400, "The target of the request is no path.", reason="bad_target")
_CODES = {502: "UNAVAILABLE", 413: "PAYLOAD_TOO_LARGE", 404: "NOT_FOUND", 503: "UNAVAILABLE"}


def render(refusal: RouterRefusal, area: Area, cells: list[str]) -> tuple[RawHeaders, bytes]:
    """Return headers and body. `cells` are those at which a person may log in instead."""
    request_id = uuid4().hex
    headers = {"x-request-id": request_id, "cache-control": "no-store"}
    if refusal.retry_after is not None:
        headers["retry-after"] = str(refusal.retry_after)
    if refusal.status in (408, 413):
        headers["connection"] = "close"
    kind, body = "application/json", b""
    if area is Area.API:
        error = errors.ApiError.as_json(_error(refusal), request_id)
        body = orjson.dumps({"error": error})
    elif area is Area.OAUTH:
        unavailable = refusal.status >= 500
        code = "temporarily_unavailable" if unavailable else "invalid_request"
        body = orjson.dumps({"error": code, "error_description": refusal.message})
    elif area is Area.BOT:
        body = orjson.dumps(_bot_body(refusal, request_id))
    elif area is Area.CONSOLE:
        kind, body = "text/html; charset=utf-8", _page(refusal, cells).encode()
        headers["content-security-policy"] = "default-src 'none'"
    else:
        kind, body = "text/plain; charset=utf-8", f"{refusal.message}\n".encode()
    headers |= {"content-type": kind, "content-length": str(len(body))}
    return [(name.encode(), value.encode()) for name, value in headers.items()], body


def _error(refusal: RouterRefusal) -> errors.ApiError:
    error = errors.Unavailable(refusal.message)
    kinds = {cls.code: cls for cls in (errors.PayloadTooLarge, errors.NotFound)}
    return kinds.get(_CODES.get(refusal.status, ""), type(error))(refusal.message)


def _bot_body(refusal: RouterRefusal, request_id: str) -> dict[str, object]:
    return {
        "code": refusal.status,
        "status": HTTPStatus(refusal.status).phrase,
        "error": _CODES.get(refusal.status, "UNAVAILABLE").lower(),
        "field": "",
        "message": refusal.message,
        "msg": [],
        "requestId": request_id,
    }


def _page(refusal: RouterRefusal, cells: list[str]) -> str:
    links = "".join(
        f'<li><a href="/admin/login/?cell={escape(name)}">Log in at {escape(name)}</a></li>'
        for name in cells
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>rme</title>'
        '<meta name="viewport" content="width=device-width"></head><body><main>'
        f"<h1>Not available</h1><p>{escape(refusal.message)}</p>"
        f"{f'<ul>{links}</ul>' if links else ''}</main></body></html>"
    )
