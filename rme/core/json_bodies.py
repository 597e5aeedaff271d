"""Bodies of REST calls: JSON in, JSON out. Apart from `api`, which REST framework loads later."""

from collections.abc import Mapping
from typing import IO, Any

import orjson
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer

from rme.core import errors

BODY_LIMIT = 5 * 1024 * 1024
DEPTH_LIMIT = 64
"""How deep a body may nest where it is walked."""


class JsonParser(BaseParser):
    """Read a JSON body, bounded in size."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        assert parser_context is not None  # REST framework always gives it
        request: HttpRequest = parser_context["request"]._request
        if int(request.headers.get("Content-Length") or 0) > BODY_LIMIT:
            raise errors.PayloadTooLarge
        try:
            body = request.body
        except RequestDataTooBig as error:
            raise errors.PayloadTooLarge from error
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            # The library says where ("line 1 column 5"), and nothing of what was sent.
            raise errors.InvalidPayload(f"The body is not valid JSON: {error}") from error
        return value


def may_hold_nul(body: bytes) -> bool:
    """Say whether a JSON text may hold a NUL character: then a walk has to tell.

    It stands there escaped, or as an escaped backslash before `u0000`, which is none.
    """
    return b"\\u0000" in body


def refuse_nul(value: Any, path: str = "", depth: int = 0) -> None:
    """Refuse NUL characters, which PostgreSQL cannot keep, naming the place."""
    if depth > DEPTH_LIMIT:
        raise errors.InvalidPayload.at(path, f"nested deeper than {DEPTH_LIMIT} levels")
    if isinstance(value, str):
        if "\x00" in value:
            raise errors.InvalidPayload.at(path or "body", "must not contain NUL characters")
    elif isinstance(value, dict):
        for key, member in value.items():
            refuse_nul(key, path, depth)
            refuse_nul(member, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            refuse_nul(member, f"{path}[{index}]", depth + 1)


class JsonRenderer(BaseRenderer):
    """Write JSON (REST framework's hook; most views answer with `json_response`)."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(self, data: Any, *_: Any, **__: Any) -> bytes:
        return orjson.dumps(data)
