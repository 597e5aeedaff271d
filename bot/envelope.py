"""Response bodies: one flat JSON object that always has every key.

A failure is raised as one of the classes below; its `body` is the response. The 401 is the
exception: the contract fixes its body.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson
from django.http import HttpResponse

SIZE_LIMIT = 64_000
"""Greatest size of a body in bytes: 64 kB, by either definition of kB."""
CUTS = (8000, 2000, 500, 100)
"""Greatest lengths of a text, tried in this order until the body fits."""

Body = dict[str, Any]


class BotFailure(Exception):
    """A call that fails, with the status code and the fields of its response."""

    def __init__(
        self,
        code: int,
        error: str,
        message: str,
        *,
        field: str = "",
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, object] | None = None,
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


class UnauthorizedCall(BotFailure):
    """The key is missing, wrong, or not allowed to use the action."""

    def __init__(self) -> None:
        super().__init__(401, "unauthorized", "")

    def body(self, request_id: str) -> Body:
        return {"code": 401, "status": "Unauthorized"}


def invalid(field: str, message: str, error: str = "invalid_parameter") -> BotFailure:
    """Return the failure for an invalid parameter."""
    return BotFailure(400, error, f"{field} {message}", field=field)


def phrase(code: int) -> str:
    """Return the reason phrase of a status code (RFC 9110)."""
    return "Content Too Large" if code == 413 else HTTPStatus(code).phrase


def respond(
    body: Body, *, always_200: bool, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    """Build the response; its HTTP status is the body's code, or 200 if `always_200`."""
    return HttpResponse(
        orjson.dumps(body),
        status=200 if always_200 else body["code"],
        content_type="application/json",
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


def found_body(records: Sequence[Body], request_id: str) -> Body:
    """Return the body for a look-up, shortened to SIZE_LIMIT."""
    entries = list(records)
    for length in CUTS:
        if _fits(body := _found(entries, request_id)):
            return body
        entries = [_cut(record, length) for record in records]
    while not _fits(body := _found(entries, request_id)):
        entries.pop()
    return body


def _found(records: Sequence[Body], request_id: str) -> Body:
    return {"code": 200, "status": "Success", "msg": records, "requestId": request_id}


def created_body(kind: str, identifier: str, request_id: str, *, created: bool) -> Body:
    """Return the body for a create; `created` is false if the record existed."""
    result = "Created Successfully" if created else "Already Exists"
    return {
        "code": 200,
        "status": f"{kind} {result}",
        "id": identifier,
        "created": created,
        "requestId": request_id,
    }


def _fits(body: Body) -> bool:
    return len(orjson.dumps(body)) <= SIZE_LIMIT


def _cut(record: Body, length: int) -> Body:
    return {
        name: f"{value[: length - 1]}…" if isinstance(value, str) and len(value) > length else value
        for name, value in record.items()
    }
