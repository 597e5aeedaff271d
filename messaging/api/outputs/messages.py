"""Send results, messages and their history."""

from typing import Any, Literal

from pydantic import Field, RootModel

from messaging.api.outputs.common import ErrorObject, Output

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


class RehearsedOutput(Output):
    """What a recipient would get."""

    contact_id: str
    status: StatusName | None
    resolved_channel: str | None
    provider: str | None
    scheduled_for: str | None
    error: ErrorObject | None
    trace: list["StepOutput"]
    content: dict[str, Any] | None = Field(description="What would be handed over, by channel.")
    render_error: str | None = Field(description="Why the text could not be rendered.")


class RehearsalOutput(Output):
    """What a dry run tells. Nothing was stored, so no `messageId` stands anywhere.

    The fields of the send result that it would have had stand here and in `result`; they are null
    where it would be refused.
    """

    message_id: None
    status: StatusName | None
    resolved_channel: str | None
    provider: str | None
    scheduled_for: str | None = Field(description="ISO 8601, UTC.")
    would_send: bool
    result: dict[str, Any] | None = Field(description="The send result that it would have had.")
    error: ErrorObject | None
    recipients: list[RehearsedOutput]


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
    waiting: str | None = Field(
        description="Why it waits: PAUSED, PROVIDER, RATE, PLATFORM or QUIET_HOURS."
    )
    error: ReasonOutput | None


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


class StepOutput(Output):
    """One step of the trace; docs/messages.md says what each may hold."""

    at: str
    step: Literal["DECISION", "ATTEMPT", "GATE", "WAIT", "FAILOVER", "FALLBACK"]
    result: str | None = Field(description="CHOSEN, a code, an outcome; null: no answer yet.")
    channel: str | None = None
    entry: str | None = Field(default=None, description="The entry that decided.")
    until: str | None = None
    provider: str | None = None
    provider_id: str | None = None
    device_id: str | None = None
    detail: str | None = None
    latency_ms: int | None = None


class TraceOutput(Output):
    contact_id: str
    steps: list[StepOutput]


class DetailedOutput(SummaryOutput):
    """A message with its events, and with its trace where `include=trace` asks for it."""

    events: list[EventOutput]
    trace: list[TraceOutput] | None = None


class HistoryOutput(Output):
    messages: list[SummaryOutput]
    next_cursor: str | None


class SentOrRehearsed(RootModel[SendOutput | RehearsalOutput]):
    """With `Prefer: wait` the send result of what has left; with `dryRun` what it tells."""
