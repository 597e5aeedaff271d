"""The cell of the benchmark `router`: it owns every key, and answers each request at once."""

from typing import Any

_OWNER = b'{"organization":"bench","cell":"eu"}'
_ANSWER = b'{"messageId":"01980000-0000-7000-8000-000000000001","status":"ACCEPTED"}'


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Read the request, and answer 200 or 202 (an ASGI application)."""
    while (await receive()).get("more_body"):
        pass
    is_question = scope["path"] == "/cell/owner"
    body = _OWNER if is_question else _ANSWER
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"x-request-id", b"01980000-0000-7000-8000-000000000001"),
    ]
    status = 200 if is_question else 202
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
