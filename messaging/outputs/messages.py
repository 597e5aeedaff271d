"""Send results, messages and their history."""

from typing import Any, Literal

from pydantic import Field

from messaging.outputs.common import ErrorObject, Output

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
