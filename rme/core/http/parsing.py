"""Parsing calls: the Idempotency-Key, and a body, which is JSON of bounded size, then a schema.

The InvalidPayload error of a schema names every field that is wrong. Not in `api`, because settings
load this module before it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain, islice
from typing import IO, Any, TypeVar

import orjson
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from pydantic import BaseModel, TypeAdapter, ValidationError
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.utils.mediatypes import media_type_matches

from rme.core import exact_json
from rme.core.errors import Detail, InvalidPayload, PayloadTooLarge, UnsupportedMediaType

M = TypeVar("M", bound=BaseModel)

BODY_LIMIT = 5 * 1024 * 1024
DEPTH_LIMIT = 64
"""The depth to which a body may nest."""
VALUES_LIMIT = 100_000
"""The number of values in a body: each takes some hundred bytes once it is parsed."""

_NESTING = (dict, list)
# The characters before each value but the first, and strings, in which they count as text. An
# unterminated string ends with the body, so that each byte is looked at once.
_TOKEN = re.compile(rb'[,\[{]|"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


IDEMPOTENCY_KEY = "Idempotency-Key"


def read_idempotency_key(header: str, limit: int) -> str | None:
    """Return the key of a header, without quotes; empty without a key, None for an invalid one.

    The draft (draft-ietf-httpapi-idempotency-key-header) quotes the key; quoted and bare are the
    same key. It is printable ASCII of at most `limit` characters.
    """
    text = header.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    return text if len(text) <= limit and text.isascii() and text.isprintable() else None


class JsonParser(BaseParser):
    """Parses JSON bodies of bounded size."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        assert parser_context is not None  # REST framework always passes it
        request: HttpRequest = parser_context["request"]._request
        try:
            body = request.body
        except RequestDataTooBig as error:
            raise PayloadTooLarge from error
        return read_json(body)


_is_json = lru_cache(maxsize=256)(partial(media_type_matches, JsonParser.media_type))


def read_body(media_type: str, body: bytes) -> object:
    """Return the value of a body, as a REST view's request has it: no body is an empty object.

    Raises UnsupportedMediaType for a body of another type than JSON, and InvalidPayload.
    """
    if not body:
        return {}
    if not _is_json(media_type):
        raise UnsupportedMediaType
    return read_json(body)


def read_json(body: bytes) -> object:
    """Return the value of a JSON text of bounded size. Raises InvalidPayload."""
    refuse_many_values(body)
    try:
        value: object = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        # The library names the position ("line 1 column 5"), and quotes nothing.
        raise InvalidPayload(f"The body is not valid JSON: {error}") from error
    refuse_deep(value)
    if exact_json.has_many_digits(body):
        _refuse_long_numbers(body)
    return value


class _LongNumber:
    """The stand-in for a whole number of more than 64 bits."""


def _refuse_long_numbers(body: bytes) -> None:
    """Raise InvalidPayload, with the path, for whole numbers that would be rounded."""
    pending: list[tuple[str, object]] = [("", json.loads(body, parse_int=_whole_number))]
    while pending:
        path, value = pending.pop()
        if isinstance(value, _LongNumber):
            raise InvalidPayload.at(
                path or "body", "is a number of more than 64 bits: write it as a string"
            )
        if isinstance(value, dict):
            pending += [(f"{path}.{key}" if path else key, each) for key, each in value.items()]
        elif isinstance(value, list):
            pending += [(f"{path}[{index}]", each) for index, each in enumerate(value)]


def _whole_number(digits: str) -> int | _LongNumber:
    number = exact_json.fitting(digits)
    return _LongNumber() if number is None else number


def refuse_many_values(body: bytes) -> None:
    """Raise InvalidPayload for a JSON text of too many values, before it is parsed."""
    if sum(map(body.count, (b",", b"[", b"{"))) < VALUES_LIMIT:
        return  # few enough, even if those in strings are counted
    tokens = (token for token in _TOKEN.finditer(body) if body[token.start()] != 0x22)
    if next(islice(tokens, VALUES_LIMIT - 1, None), None):
        raise InvalidPayload.at("body", f"holds more than {VALUES_LIMIT} values")


def refuse_deep(value: object) -> None:
    """Raise InvalidPayload for a value that nests deeper than DEPTH_LIMIT."""
    level, depth = [value], -1
    while level := [each for each in level if isinstance(each, _NESTING)]:
        depth += 1
        if depth > DEPTH_LIMIT:
            raise InvalidPayload.at("body", f"nested deeper than {DEPTH_LIMIT} levels")
        members = (each.values() if isinstance(each, dict) else each for each in level)
        level = list(chain.from_iterable(members))


def may_hold_nul(body: bytes) -> bool:
    """Return whether a JSON text may hold a NUL character, so that its values have to be searched.

    It may also be an escaped backslash before the text `u0000`, which is none.
    """
    return b"\\u0000" in body


def refuse_nul_in(value: object, body: bytes) -> None:
    """Raise InvalidPayload for NUL characters in the value of a JSON text."""
    if may_hold_nul(body):
        refuse_nul(value)


def refuse_nul(value: object, path: str = "", depth: int = 0) -> None:
    """Raise InvalidPayload, with the path, for NUL characters: PostgreSQL cannot store them."""
    if depth > DEPTH_LIMIT:
        raise InvalidPayload.at(path, f"nested deeper than {DEPTH_LIMIT} levels")
    if isinstance(value, str):
        if "\x00" in value:
            raise InvalidPayload.at(path or "body", "must not contain NUL characters")
    elif isinstance(value, dict):
        for key, member in value.items():
            refuse_nul(key, path, depth)
            refuse_nul(member, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            refuse_nul(member, f"{path}[{index}]", depth + 1)


class JsonRenderer(BaseRenderer):
    """Renders JSON (REST framework's hook; most views return `json_response`)."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(self, data: object, *_: object, **__: object) -> bytes:
        return orjson.dumps(data)


# --- schemas --------------------------------------------------------------------------------------


DETAILS_LIMIT = 20

_UNION_TAGS = {"LOCAL", "ORG", "AT", "function-before", "function-after"}
_MESSAGES = {
    "missing": "is required",
    "extra_forbidden": "unknown field",
    "string_type": "must be a string",
    "int_type": "must be a whole number",
    "dict_type": "must be an object",
    "list_type": "must be a list",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
}


def path(location: Sequence[str | int]) -> str:
    """Write the path of a field as callers read it: `to[0].contactId`."""
    text = ""
    for step in location:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step != "[key]" and step not in _UNION_TAGS:
            text += f".{step}" if text else step
    return text


def invalid(error: ValidationError) -> InvalidPayload:
    """Convert the errors of a schema to one InvalidPayload, with a detail for each field."""
    details = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        field = path(problem["loc"])
        if problem["type"] in ("channel", "channels", "template"):
            field = f"{field}.{problem['type']}" if field else problem["type"]
        text = _MESSAGES.get(problem["type"], problem["msg"][:300])
        details.append(Detail(field or "body", text))
    first = details[0]
    return InvalidPayload(f"{first.field}: {first.message}", details=details[:DETAILS_LIMIT])


def parse(adapter: TypeAdapter[M], body: object) -> M:
    """Parse a body; raise InvalidPayload, which names every field that is wrong."""
    try:
        return adapter.validate_python(body)
    except ValidationError as error:
        raise invalid(error) from error
