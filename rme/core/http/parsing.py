"""Parsing a body by its schema; the InvalidPayload error names every field that is wrong."""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from rme.core.errors import Detail, InvalidPayload

DETAILS_LIMIT = 20

M = TypeVar("M", bound=BaseModel)

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
