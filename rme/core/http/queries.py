"""Query strings: their base, and the parameters that several calls share."""

import base64
import binascii
import re
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError, WithJsonSchema

from rme.core import errors
from rme.core.http.fields import Schema
from rme.core.http.parsing import invalid


def _number(value: object) -> object:
    return int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,6}", value) else value


def _switch(value: Any) -> object:
    return {"true": True, "false": False}.get(value.lower(), value)


Limit = Annotated[int, Field(ge=1, le=200), BeforeValidator(_number)]
Cursor = Annotated[str, StringConstraints(max_length=600)]
Switch = Annotated[bool, BeforeValidator(_switch), WithJsonSchema({"type": "boolean"})]


class Query(Schema):
    """Base of the query parameters of one call."""

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        """Return the names of the parameters as callers write them."""
        return tuple(field.alias or name for name, field in cls.model_fields.items())

    @classmethod
    def read(cls, query: dict[str, Any]) -> Self:
        """Parse a query; raise InvalidPayload, which names every parameter that is wrong."""
        try:
            return cls.model_validate(query)
        except ValidationError as error:
            raise invalid(error) from error


def cursor_of(identifier: UUID) -> str:
    """Write the cursor that begins after a row. Opaque to callers, so that it may change."""
    return base64.urlsafe_b64encode(identifier.bytes).decode().rstrip("=")


def read_cursor(text: str) -> UUID:
    """Read a cursor that an answer contained. Raises InvalidPayload."""
    try:
        return UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    except (ValueError, binascii.Error):
        raise errors.InvalidPayload.at("cursor", "not a cursor of ours") from None
