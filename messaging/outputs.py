"""What the messaging calls answer, as pydantic models: OpenAPI is made from these, and tests hold
real answers against them.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

StatusName = Literal[
    "ACCEPTED",
    "SCHEDULED",
    "SENDING",
    "SENT",
    "DELIVERED",
    "FAILED",
    "BLOCKED",
    "CANCELLED",
    "EXPIRED",
    "UNKNOWN",
]


class Output(BaseModel):
    """Base: camelCase on the wire, nothing that is not described."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", populate_by_name=True)


class DetailOutput(Output):
    field: str = Field(examples=["to[0].contactId"])
    message: str


class ErrorObject(Output):
    code: str = Field(examples=["INVALID_PAYLOAD"])
    message: str
    message_id: str | None
    request_id: str
    details: list[DetailOutput]


class ErrorOutput(Output):
    """Every error has this shape."""

    error: ErrorObject


class RecipientOutput(Output):
    contact_id: str
    status: StatusName
    resolved_channel: str | None
    provider: str | None
    scheduled_for: str | None = Field(description="ISO 8601, UTC.")
    error: ErrorObject | None


class SendOutput(Output):
    """The send result. `recipients` is there where there is more than one."""

    message_id: str
    status: StatusName
    resolved_channel: str | None
    provider: str | None
    scheduled_for: str | None = Field(description="ISO 8601, UTC.")
    recipients: list[RecipientOutput] | None = None


class BulkItemOutput(Output):
    """The send result of one item, or its error."""

    index: int
    message_id: str | None = None
    status: StatusName | None = None
    resolved_channel: str | None = None
    provider: str | None = None
    scheduled_for: str | None = None
    recipients: list[RecipientOutput] | None = None
    error: ErrorObject | None = None


class BulkOutput(Output):
    accepted: int
    rejected: int
    results: list[BulkItemOutput]


class ReasonOutput(Output):
    code: str
    message: str


class DeliveryOutput(Output):
    contact_id: str
    status: StatusName
    resolved_channel: str | None
    provider: str | None
    scheduled_for: str | None
    waiting: str | None = Field(description="Why it waits: PAUSED or PROVIDER.")
    error: ReasonOutput | None


class CancelOutput(Output):
    """The send result of a message that was cancelled."""

    message_id: str
    status: StatusName
    resolved_channel: str | None
    provider: str | None
    scheduled_for: str | None
    recipients: list[DeliveryOutput] | None = None


class EventOutput(Output):
    type: str = Field(examples=["sent", "delivered", "open"])
    at: str
    contact_id: str
    channel: str | None = None
    provider: str | None = None
    detail: dict[str, Any] | None = None


class TemplateOutput(Output):
    name: str
    language: str | None


class SummaryOutput(Output):
    """A message without its events."""

    message_id: str
    status: StatusName
    channel: str | None
    category: str
    template: TemplateOutput | None
    provider: str | None
    scheduled_for: str | None
    created_at: str
    error: ReasonOutput | None
    metadata: dict[str, str]
    test: bool
    recipients: list[DeliveryOutput]


class DetailedOutput(SummaryOutput):
    """A message with its events."""

    events: list[EventOutput]


class HistoryOutput(Output):
    messages: list[SummaryOutput]
    next_cursor: str | None
