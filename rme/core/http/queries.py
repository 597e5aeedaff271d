"""Query strings: their base, the parameters that several calls share, and those of messages."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, TypeAdapter, WithJsonSchema

from rme.core.http.fields import Schema
from rme.core.http.parsing import parse


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,6}", value) else value


def _switch(value: Any) -> Any:
    return {"true": True, "false": False}.get(value.lower(), value)


Limit = Annotated[int, Field(ge=1, le=200), BeforeValidator(_whole)]
Cursor = Annotated[str, StringConstraints(max_length=600)]
Switch = Annotated[bool, BeforeValidator(_switch), WithJsonSchema({"type": "boolean"})]


class Query(Schema):
    """Base: the parameters of one call."""

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        """Give the names of the parameters as callers write them."""
        return tuple(field.alias or name for name, field in cls.model_fields.items())

    @classmethod
    def read(cls, query: dict[str, Any]) -> Self:
        """Check a query; raise INVALID_PAYLOAD that names every parameter that is wrong."""
        return parse(TypeAdapter(cls), query)


class SendQuery(Query):
    """The query of POST /messages."""

    dry_run: Switch = Field(
        default=False, description="Only tell what would become of it: nothing is stored or sent."
    )


class DetailQuery(Query):
    """The query of GET /messages/{id}."""

    include: Literal["trace"] | None = Field(
        default=None, description="`trace`: why the message went as it did."
    )
