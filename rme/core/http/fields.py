"""The field types of request schemas, and the bases of schemas of bodies and query strings.

Unknown fields are refused, numbers are not read from strings, and enumerated values are read
case-insensitively. Names in JSON are camelCase.
"""

import base64
import binascii
import datetime as dt
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from django.utils.translation import gettext as _
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, PydanticKnownError, core_schema

from rme.core import addresses, errors, ids, push_data
from rme.core.http.parsing import invalid

DEPTH_LIMIT = 16


def _upper(value: object) -> object:
    # only ASCII letters: the capital of a dotless i is an I
    return value.upper() if isinstance(value, str) and value.isascii() else value


def any_case(names: Sequence[str]) -> JsonSchemaValue:
    """Return the JSON schema of enumerated values that are read in any case."""
    cases = ("".join(f"[{c}{c.lower()}]" if c.isalpha() else c for c in name) for name in names)
    return {
        "type": "string",
        "anyOf": [{"enum": list(names)}, {"pattern": f"^({'|'.join(cases)})$"}],
    }


class _AnyCase:
    """An annotation: the enumerated value is read in any case, and its JSON schema says so."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(_upper, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return any_case(handler(schema)["enum"])


class _Enumerated:
    """An annotation: an enumeration is read by its values, and OpenAPI lists them in its place."""

    def __get_pydantic_core_schema__(
        self, source: type[StrEnum], _handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        values = core_schema.literal_schema([each.value for each in source])
        return core_schema.no_info_after_validator_function(source, values)


def _shallow(value: object, depth: int = 0) -> object:
    if depth > DEPTH_LIMIT:
        raise PydanticCustomError("depth", _("nested deeper than {n} levels"), {"n": DEPTH_LIMIT})
    if isinstance(value, dict):
        for member in value.values():
            _shallow(member, depth + 1)
    elif isinstance(value, list):
        for member in value:
            _shallow(member, depth + 1)
    return value


def _clock(value: object) -> object:
    if not isinstance(value, str) or not re.fullmatch(r"([01][0-9]|2[0-3]):[0-5][0-9]", value):
        raise PydanticCustomError("clock", _("must be a time like 09:30"))
    return dt.time(int(value[:2]), int(value[3:]))


def _day(value: object) -> object:
    try:
        if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
            return dt.date.fromisoformat(value)
    except ValueError:
        pass  # well-formed, but not in the calendar: the same error as below
    raise PydanticCustomError("day", _("must be a date like 2026-11-30"))


def _instant(value: object) -> object:
    try:
        moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else None
        if moment is not None and moment.tzinfo is not None and moment.utcoffset() is not None:
            return moment
    except ValueError:
        pass  # the same error as for any other value that is not an instant
    raise PydanticCustomError(
        "instant", _("must be an ISO 8601 time with offset, like …T09:30:00Z")
    )


def _domain(value: str) -> str:
    folded = addresses.domain(value)
    if folded is None:
        raise PydanticCustomError("domain", _("must be a domain name"))
    return folded


def at_most(count: int) -> BeforeValidator:
    """Return a validator of an object's size, which runs before its members are checked."""

    def check(value: object) -> Any:
        if isinstance(value, dict) and len(value) > count:
            about = {"field_type": "Dictionary", "max_length": count, "actual_length": len(value)}
            raise PydanticKnownError("too_long", about)
        return value

    return BeforeValidator(check)


_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
_CONTROLS = re.compile(f"[{_CONTROL}]")


class _Printable:
    """An annotation: no control characters and line ends. Joiners and spaces are allowed."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(_printable, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(schema), "pattern": f"^[^{_CONTROL}]*$"}


def _printable(value: str) -> str:
    if not value.isprintable() and _CONTROLS.search(value):
        raise PydanticCustomError("printable", _("must not contain control characters"))
    return value


def given(name: str) -> JsonSchemaValue:
    """Return the JSON schema condition that a field is present and not null."""
    return {"required": [name], "properties": {name: {"not": {"type": "null"}}}}


def exactly_one(*names: str) -> JsonSchemaValue:
    """Return the JSON schema condition that exactly one of these fields is given."""
    return {"oneOf": [given(name) for name in names]}


def _integral_float_to_int(value: object) -> object:
    # For JSON and JSON Schema 5 and 5.0 are the same number.
    return int(value) if isinstance(value, float) and value.is_integer() else value


Upper = _AnyCase()
ENUMERATED = _Enumerated()
Integer = BeforeValidator(_integral_float_to_int)
Printable = _Printable()
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
RecordId = Annotated[
    str,
    StringConstraints(min_length=1, max_length=64),
    Printable,
    AfterValidator(ids.record_id),
]
Language = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}(_[A-Z]{2})?$")]
CategoryName = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,63}$"),
    BeforeValidator(_upper),
    WithJsonSchema({"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_]{0,63}$"}),
]
Line = Annotated[str, StringConstraints(max_length=998), Printable]
LongText = Annotated[str, StringConstraints(max_length=1_000_000)]
Variables = Annotated[dict[str, Any], Field(max_length=200), AfterValidator(_shallow)]
Pairs = Annotated[
    dict[
        Annotated[str, StringConstraints(min_length=1, max_length=64)],
        Annotated[str, StringConstraints(max_length=1000)],
    ],
    Field(max_length=20),
    at_most(20),
]


def _free_key(name: str) -> str:
    if push_data.is_reserved(name):
        raise PydanticCustomError("reserved_key", push_data.REASON)
    return name


DataKey = Annotated[
    str,
    StringConstraints(min_length=1, max_length=128),
    AfterValidator(_free_key),
    WithJsonSchema(
        {
            "type": "string",
            "minLength": 1,
            "maxLength": 128,
            "pattern": f"^(?!{push_data.RESERVED})",
        }
    ),
]
Data = Annotated[
    dict[DataKey, LongText],
    Field(max_length=50),
    at_most(50),
]
Badge = Annotated[int, Field(ge=0, le=99_999), Integer]


MEMBERS_LIMIT = 100
"""More members than any schema has fields. It bounds the errors, one for each unknown member."""


class Schema(BaseModel):
    """Base of request schemas: strict types, no unknown fields, camelCase names."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, alias_generator=to_camel, validate_by_name=False
    )

    @model_validator(mode="before")
    @classmethod
    def _few_members(cls, value: object) -> object:
        if isinstance(value, dict) and len(value) > MEMBERS_LIMIT:
            raise PydanticCustomError(
                "members", _("has more than {n} members"), {"n": MEMBERS_LIMIT}
            )
        return value


# --- query strings --------------------------------------------------------------------------------


def _number(value: object) -> object:
    return int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,6}", value) else value


def _switch(value: Any) -> object:
    return {"true": True, "false": False}.get(value.lower(), value)


def _restore_offset(value: object) -> object:
    return _LOST_OFFSET.sub("+", value) if isinstance(value, str) else value


def _restore_plus(value: object) -> object:
    return addresses.with_plus(value) if isinstance(value, str) else value


_LOST_OFFSET = re.compile(r"(?<=[0-9]) (?=[0-9]{2}(:?[0-9]{2})?$)")
QueryInstant = Annotated[Instant, BeforeValidator(_restore_offset)]
"""An instant in a query, where an unencoded `+` has become a space."""
RestoredPlus = BeforeValidator(_restore_plus)
"""Restores an unencoded `+` of an address in a query, which has become a space."""
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


def cursor_of(last: UUID | None) -> str | None:
    """Write the cursor that begins after a page's last row; None where no page follows.

    Opaque to callers, so that it may change.
    """
    if last is None:
        return None
    return base64.urlsafe_b64encode(last.bytes).decode().rstrip("=")


def read_cursor(text: str | None) -> UUID | None:
    """Read a cursor that an answer contained; None for none. Raises InvalidPayload."""
    if not text:
        return None
    try:
        return UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    except (ValueError, binascii.Error):
        raise errors.InvalidPayload.at("cursor", "not a cursor of ours") from None
