"""The input of the calls that send. OpenAPI is made from these models."""

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticCustomError

from messaging.content.inputs import ContextInput
from messaging.domain.channels import Channel
from rme.core import addresses
from rme.core.http.fields import (
    Badge,
    CategoryName,
    ChannelName,
    Clock,
    Data,
    Day,
    DomainName,
    Instant,
    Integer,
    Language,
    Line,
    LongText,
    Pairs,
    Printable,
    RecordId,
    Schema,
    Upper,
    Variables,
    any_case,
    exactly_one,
    given,
)
from rme.core.provider import sms_sender


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

    def suits(self, channel: Channel) -> bool:
        """Return whether the texts are there that a channel needs (`_SUITS` says it in OpenAPI)."""
        match channel:
            case Channel.EMAIL:
                return bool((self.subject or self.title) and (self.text or self.html or self.body))
            case Channel.SMS:
                return bool(self.text or self.body)
            case Channel.PUSH:
                return bool(self.title or self.body or self.text)


class PushInput(Schema):
    """What a push says beyond its template."""

    data: Data | None = None
    badge: Badge | None = None
    image: Annotated[str, StringConstraints(max_length=2000)] | None = None
    link: Annotated[str, StringConstraints(max_length=2000)] | None = None
    ttl: Annotated[int, Field(ge=0, le=2_419_200, description="Seconds."), Integer] | None = None
    collapse_key: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    priority: Annotated[Literal["HIGH", "NORMAL"], Upper] | None = None


def _local_part(value: str) -> str:
    if not addresses.is_local_part(value):
        raise PydanticCustomError(
            "local_part", "must be letters, digits and signs of RFC 5322, with single dots between"
        )
    return value


LocalPart = Annotated[
    str,
    StringConstraints(min_length=1, max_length=addresses.MAX_LOCAL_PART),
    AfterValidator(_local_part),
    Field(json_schema_extra={"pattern": addresses.DOT_ATOM}),
]
"""The part of the sender's address before the @: a dot-atom (RFC 5322 §3.2.3)."""


class FromInput(Schema):
    domain: Annotated[str, StringConstraints(max_length=253), DomainName] | None = None
    name: Annotated[str, StringConstraints(max_length=200), Printable] | None = Field(
        default=None,
        description="The sender that recipients see. If you leave it out, email shows the sender "
        f"domain's name, and SMS the provider account's sender. {sms_sender.RULE}. If SMS is the "
        "only channel, rme rejects any other name; with several channels, email shows it, and "
        "`warnings` says so.",
    )
    local_part: LocalPart | None = None


class LocalSchedule(Schema):
    """That wall-clock time where each recipient is."""

    mode: Annotated[Literal["LOCAL"], WithJsonSchema(any_case(["LOCAL"]))]
    time: Clock
    date: Day | None = None


class OrgSchedule(Schema):
    """That wall-clock time in the organization's zone."""

    mode: Annotated[Literal["ORG"], WithJsonSchema(any_case(["ORG"]))]
    time: Clock
    date: Day | None = None


class AtSchedule(Schema):
    """That instant."""

    mode: Annotated[Literal["AT"], WithJsonSchema(any_case(["AT"]))]
    at: Instant


def _known_mode(value: object) -> object:
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


def _filled(*names: str) -> JsonSchemaValue:
    """Return the JSON schema condition that one of these texts is present and not empty."""
    text = {"type": "string", "minLength": 1}
    return {"anyOf": [{"required": [name], "properties": {name: text}} for name in names]}


_SUITS: dict[str, JsonSchemaValue] = {
    "EMAIL": {"allOf": [_filled("subject", "title"), _filled("text", "html", "body")]},
    "SMS": _filled("text", "body"),
    "PUSH": _filled("title", "body", "text"),
}
"""The texts that literal content needs on each channel, as `ContentInput.suits` decides."""
_ANY = {"type": "object", **_filled("text", "body", "title")}


def _content_suits() -> JsonSchemaValue:
    """Return the JSON schema condition that literal content suits one of the channels."""
    single = [
        {"properties": {"channel": any_case([name]), "content": {"type": "object", **needs}}}
        for name, needs in _SUITS.items()
    ]
    several = [
        {
            "properties": {
                "channels": {"type": "array", "contains": any_case([name])},
                "content": {"type": "object", **needs},
            }
        }
        for name, needs in _SUITS.items()
    ]
    auto = {"properties": {"channel": any_case(["AUTO"]), "content": _ANY}}
    return {
        "anyOf": [
            given("template"),
            *({"required": ["channel"], **each} for each in (*single, auto)),
            *({"required": ["channels"], **each} for each in several),
        ]
    }


class MessageInput(Schema):
    """One request to send: to one or more recipients."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                exactly_one("channel", "channels"),
                exactly_one("template", "content"),
                _content_suits(),
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
    fallback_after: (
        Annotated[int, Field(ge=30, le=86_400, description="Seconds."), Integer] | None
    ) = None
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
        Annotated[
            str,
            StringConstraints(pattern=r"^[\x20-\x7e]{1,255}$"),
            # As for the header: empty quotes or only spaces are not a key.
            WithJsonSchema({"type": "string", "pattern": '^(?! *("")? *$)[ -~]{1,255}$'}),
        ]
        | None
    ) = None


class BulkInput(Schema):
    """The envelope of a bulk. The items are checked one by one: a bad one fails no other."""

    messages: Annotated[
        list[Any],
        Field(min_length=1, max_length=500),
    ]


MESSAGE = TypeAdapter(MessageInput)
BULK_ITEM = TypeAdapter(BulkItem)
BULK = TypeAdapter(BulkInput)
