"""The types of fields that calls take, and the base of their schemas.

Unknown fields are refused, numbers are not read out of strings, and enumerated values are read
case-insensitively. The wire uses camelCase.
"""

import datetime as dt
import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from rme.core import addresses

DEPTH_LIMIT = 16


def _upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


def _shallow(value: Any, depth: int = 0) -> Any:
    if depth > DEPTH_LIMIT:
        raise PydanticCustomError("depth", "nested deeper than {n} levels", {"n": DEPTH_LIMIT})
    if isinstance(value, dict):
        for member in value.values():
            _shallow(member, depth + 1)
    elif isinstance(value, list):
        for member in value:
            _shallow(member, depth + 1)
    return value


def _clock(value: Any) -> Any:
    if not isinstance(value, str) or not re.fullmatch(r"([01][0-9]|2[0-3]):[0-5][0-9]", value):
        raise PydanticCustomError("clock", "must be a time like 09:30")
    return dt.time(int(value[:2]), int(value[3:]))


def _day(value: Any) -> Any:
    try:
        if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
            return dt.date.fromisoformat(value)
    except ValueError:
        pass  # well-formed and no day of the calendar: the same answer as below
    raise PydanticCustomError("day", "must be a date like 2026-11-30")


def _instant(value: Any) -> Any:
    try:
        moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else None
        if moment is not None and moment.tzinfo is not None and moment.utcoffset() is not None:
            return moment
    except ValueError:
        pass  # the same answer as for anything else that is no instant
    raise PydanticCustomError("instant", "must be an ISO 8601 time with offset, like …T09:30:00Z")


def _domain(value: str) -> str:
    folded = addresses.domain(value)
    if folded is None:
        raise PydanticCustomError("domain", "must be a domain name")
    return folded


def _printable(value: str) -> str:
    if not value.isprintable():
        raise PydanticCustomError("printable", "must not contain control characters")
    return value


Upper = BeforeValidator(_upper)
Printable = AfterValidator(_printable)
DomainName = AfterValidator(_domain)
Clock = Annotated[
    dt.time,
    BeforeValidator(_clock),
    WithJsonSchema({"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"}),
]
Day = Annotated[
    dt.date, BeforeValidator(_day), WithJsonSchema({"type": "string", "format": "date"})
]
Instant = Annotated[
    dt.datetime,
    BeforeValidator(_instant),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
ChannelName = Annotated[Literal["EMAIL", "SMS", "PUSH"], Upper]
RecordId = Annotated[str, StringConstraints(min_length=1, max_length=64), Printable]
Language = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}(_[A-Z]{2})?$")]
CategoryName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,63}$"), Upper]
Line = Annotated[str, StringConstraints(max_length=998), Printable]
LongText = Annotated[str, StringConstraints(max_length=1_000_000)]
Variables = Annotated[dict[str, Any], AfterValidator(_shallow), Field(max_length=200)]
Pairs = Annotated[
    dict[
        Annotated[str, StringConstraints(min_length=1, max_length=64)],
        Annotated[str, StringConstraints(max_length=1000)],
    ],
    Field(max_length=20),
]
Data = Annotated[
    dict[Annotated[str, StringConstraints(min_length=1, max_length=128)], LongText],
    Field(max_length=50),
]
Badge = Annotated[int, Field(ge=0, le=99_999)]


class Schema(BaseModel):
    """Base: strict types, no unknown fields, camelCase on the wire."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, alias_generator=to_camel, validate_by_name=False
    )
