"""What the messaging calls take, as pydantic models. OpenAPI is made from these.

Unknown fields are refused, numbers are not read out of strings, and enumerated values are read
case-insensitively. The wire uses camelCase.
"""

import datetime as dt
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from rme.core import addresses
from rme.core.errors import Detail, InvalidPayload

DETAILS_LIMIT = 20
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
    str, StringConstraints(min_length=1, max_length=64), AfterValidator(_printable)
]
Language = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}(_[A-Z]{2})?$")]
CategoryName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,63}$"), Upper]
Line = Annotated[str, StringConstraints(max_length=998), AfterValidator(_printable)]
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


class RecipientInput(Schema):
    contact_id: RecordId
    variables: Variables = Field(default_factory=dict)


class TemplateInput(Schema):
    name: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    language: Language | None = None


class ContentInput(Schema):
    """Literal content: what stands here is sent as it is."""

    subject: Line | None = None
    text: LongText | None = None
    html: LongText | None = None
    title: Annotated[str, StringConstraints(max_length=1000)] | None = None
    body: Annotated[str, StringConstraints(max_length=10_000)] | None = None
    data: Data | None = None
    badge: Badge | None = None


class PushInput(Schema):
    """What a push says beyond its template."""

    data: Data | None = None
    badge: Badge | None = None
    image: Annotated[str, StringConstraints(max_length=2000)] | None = None
    link: Annotated[str, StringConstraints(max_length=2000)] | None = None
    ttl: Annotated[int, Field(ge=0, le=2_419_200, description="Seconds.")] | None = None
    collapse_key: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    priority: Annotated[Literal["HIGH", "NORMAL"], Upper] | None = None


class ContextInput(Schema):
    record_id: RecordId | None = None
    variables: Variables = Field(default_factory=dict)


class FromInput(Schema):
    domain: Annotated[str, StringConstraints(max_length=253), AfterValidator(_domain)] | None = None
    name: Annotated[str, StringConstraints(max_length=200), AfterValidator(_printable)] | None = (
        None
    )
    local_part: (
        Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._+-]+$", max_length=64)] | None
    ) = None


class LocalSchedule(Schema):
    """That wall-clock time where each recipient is."""

    mode: Literal["LOCAL"]
    time: Clock
    date: Day | None = None


class OrgSchedule(Schema):
    """That wall-clock time in the organization's zone."""

    mode: Literal["ORG"]
    time: Clock
    date: Day | None = None


class AtSchedule(Schema):
    """That instant."""

    mode: Literal["AT"]
    at: Instant


def _known_mode(value: Any) -> Any:
    if not isinstance(value, dict):
        raise PydanticCustomError("schedule", "must be an object")
    mode = value.get("mode")
    if not isinstance(mode, str) or mode.upper() not in ("LOCAL", "ORG", "AT"):
        raise PydanticCustomError("schedule_mode", "mode must be LOCAL, ORG or AT")
    return {**value, "mode": mode.upper()}


ScheduleInput = Annotated[
    LocalSchedule | OrgSchedule | AtSchedule,
    Field(discriminator="mode"),
    BeforeValidator(_known_mode),
]


class MessageInput(Schema):
    """One request to send: to one or more recipients."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                {"oneOf": [{"required": ["channel"]}, {"required": ["channels"]}]},
                {"oneOf": [{"required": ["template"]}, {"required": ["content"]}]},
            ],
            "examples": [
                {
                    "channel": "EMAIL",
                    "category": "TRANSACTIONAL",
                    "to": [{"contactId": "01a1fb37-a4a4-7470-9fc2-6927566e64b5"}],
                    "template": {"name": "note", "language": "en_US"},
                    "context": {"variables": {"note": "Hello"}},
                }
            ],
        }
    )

    channel: Annotated[Literal["EMAIL", "SMS", "PUSH", "AUTO"], Upper] | None = None
    channels: Annotated[list[ChannelName], Field(min_length=1, max_length=3)] | None = None
    strategy: Annotated[Literal["FIRST_REACHABLE", "FIRST_DELIVERED"], Upper] = "FIRST_REACHABLE"
    fallback_after: Annotated[int, Field(ge=30, le=86_400, description="Seconds.")] | None = None
    category: CategoryName
    to: Annotated[list[RecipientInput], Field(min_length=1, max_length=100)]
    template: TemplateInput | None = None
    content: ContentInput | None = None
    push: PushInput | None = None
    context: ContextInput | None = None
    from_: FromInput | None = Field(default=None, alias="from")
    schedule: ScheduleInput | None = None
    metadata: Pairs | None = None

    @model_validator(mode="after")
    def _one_of_each(self) -> "MessageInput":
        if (self.channel is None) == (self.channels is None):
            raise PydanticCustomError("channel", "give exactly one of channel and channels")
        if self.channels and len(set(self.channels)) < len(self.channels):
            raise PydanticCustomError("channels", "the same channel twice")
        if (self.template is None) == (self.content is None):
            raise PydanticCustomError("template", "give exactly one of template and content")
        return self


class BulkItem(MessageInput):
    idempotency_key: (
        Annotated[str, StringConstraints(pattern=r"^[\x20-\x7e]{1,255}$", max_length=255)] | None
    ) = None


class BulkInput(Schema):
    """The envelope of a bulk. The items are checked one by one: a bad one fails no other."""

    messages: Annotated[
        list[Any],
        Field(min_length=1, max_length=500),
    ]


M = TypeVar("M", bound=BaseModel)

MESSAGE = TypeAdapter(MessageInput)
BULK_ITEM = TypeAdapter(BulkItem)
BULK = TypeAdapter(BulkInput)

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
    """Write a place in a body as callers do: `to[0].contactId`."""
    text = ""
    for step in location:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step != "[key]" and step not in _UNION_TAGS:
            text += f".{step}" if text else step
    return text


def invalid(error: ValidationError) -> InvalidPayload:
    """Turn a schema's complaints into the error of the contract, each with its field."""
    details = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        field = path(problem["loc"])
        if problem["type"] in ("channel", "channels", "template"):
            field = f"{field}.{problem['type']}" if field else problem["type"]
        text = _MESSAGES.get(problem["type"], problem["msg"][:300])
        details.append(Detail(field or "body", text))
    first = details[0]
    return InvalidPayload(f"{first.field}: {first.message}", details=details[:DETAILS_LIMIT])


def parse(adapter: TypeAdapter[M], body: Any) -> M:
    """Check a body; raise INVALID_PAYLOAD that names every field that is wrong."""
    try:
        return adapter.validate_python(body)
    except ValidationError as error:
        raise invalid(error) from error


def duplicates(message: MessageInput) -> InvalidPayload | None:
    """Say which contact stands twice among the recipients, if one does."""
    if len(message.to) == 1:
        return None
    seen: set[str] = set()
    for index, recipient in enumerate(message.to):
        if recipient.contact_id in seen:
            return InvalidPayload.at(f"to[{index}].contactId", "the same contact twice")
        seen.add(recipient.contact_id)
    return None
