"""The bodies of answers: always one flat JSON object with every key there.

A failure is raised as one of the classes below, and written by `failure`. The one exception is the
401, whose body is given to the letter.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson
from django.http import HttpResponse

SIZE_LIMIT = 64_000
"""Bytes of a body: 64 kB, whichever way they are counted."""
CUTS = (8000, 2000, 500, 100)
"""How long a text may be, tried in turn, where a body is too large."""

Body = dict[str, Any]


class Failure(Exception):
    """A call that cannot be done."""

    def __init__(
        self,
        code: int,
        error: str,
        message: str,
        *,
        field: str = "",
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(error)
        self.code, self.error, self.message, self.field = code, error, message, field
        self.headers = dict(headers or {})
        self.more = dict(more or {})

    def body(self, request_id: str) -> Body:
        return {
            "code": self.code,
            "status": phrase(self.code),
            "error": self.error,
            "field": self.field,
            "message": self.message,
            "msg": [],
            **self.more,
            "requestId": request_id,
        }


class Unauthorized(Failure):
    """The key is missing, incorrect, or not for this."""

    def __init__(self) -> None:
        super().__init__(401, "unauthorized", "")

    def body(self, request_id: str) -> Body:
        return {"code": 401, "status": "Unauthorized"}


def invalid(field: str, message: str, error: str = "invalid_parameter") -> Failure:
    """Make the refusal of a parameter."""
    return Failure(400, error, f"{field} {message}", field=field)


def phrase(code: int) -> str:
    """Give the standard words for a status (RFC 9110)."""
    return "Content Too Large" if code == 413 else HTTPStatus(code).phrase


def respond(
    body: Body, *, always_200: bool, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    """Answer with a body; the HTTP status is its code, or always 200."""
    return HttpResponse(
        orjson.dumps(body),
        status=200 if always_200 else body["code"],
        content_type="application/json",
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


def found_body(records: Sequence[Body], request_id: str) -> Body:
    """Write what a look-up found, cut to the size that bots take."""
    shown = list(records)
    for length in CUTS:
        if _fits(body := _found(shown, request_id)):
            return body
        shown = [_cut(record, length) for record in records]
    while not _fits(body := _found(shown, request_id)):
        shown.pop()
    return body


def _found(records: Sequence[Body], request_id: str) -> Body:
    return {"code": 200, "status": "Success", "msg": records, "requestId": request_id}


def created_body(kind: str, identifier: str, request_id: str, *, fresh: bool) -> Body:
    """Write what a create made, or found there."""
    done = "Created Successfully" if fresh else "Already Exists"
    return {
        "code": 200,
        "status": f"{kind} {done}",
        "id": identifier,
        "created": fresh,
        "requestId": request_id,
    }


def _fits(body: Body) -> bool:
    return len(orjson.dumps(body)) <= SIZE_LIMIT


def _cut(record: Body, length: int) -> Body:
    return {
        name: f"{value[: length - 1]}…" if isinstance(value, str) and len(value) > length else value
        for name, value in record.items()
    }
