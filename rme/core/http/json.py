"""Bodies of REST calls: JSON in, JSON out. Apart from `api`, which REST framework loads later."""

import re
from collections.abc import Mapping
from itertools import chain, islice
from typing import IO, Any

import orjson
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer

from rme.core import errors

BODY_LIMIT = 5 * 1024 * 1024
DEPTH_LIMIT = 64
"""How deep a body may nest."""
VALUES_LIMIT = 100_000
"""How many values a body may hold in all: each costs some hundred bytes once it is read."""

# What begins a value that is not the first, and strings, in which it begins none. An unterminated
# string ends with the body: so each byte is looked at once.
_TOKEN = re.compile(rb'[,\[{]|"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


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
        try:
            body = request.body
        except RequestDataTooBig as error:
            raise errors.PayloadTooLarge from error
        refuse_many_values(body)
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            # The library says where ("line 1 column 5"), and nothing of what was sent.
            raise errors.InvalidPayload(f"The body is not valid JSON: {error}") from error
        refuse_deep(value)
        return value


def refuse_many_values(body: bytes) -> None:
    """Raise InvalidPayload for a JSON text of too many values, before it is read."""
    if sum(map(body.count, (b",", b"[", b"{"))) < VALUES_LIMIT:
        return  # as if no comma stood in a string
    tokens = (token for token in _TOKEN.finditer(body) if body[token.start()] != 0x22)
    if next(islice(tokens, VALUES_LIMIT - 1, None), None):
        raise errors.InvalidPayload.at("body", f"holds more than {VALUES_LIMIT} values")


def refuse_deep(value: Any) -> None:
    """Raise InvalidPayload for a value that nests deeper than any call needs."""
    level, depth = [value], -1
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        if depth > DEPTH_LIMIT:
            raise errors.InvalidPayload.at("body", f"nested deeper than {DEPTH_LIMIT} levels")
        members = (each.values() if isinstance(each, dict) else each for each in level)
        level = list(chain.from_iterable(members))


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
