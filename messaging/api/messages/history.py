"""Reading messages: GET /messages and GET /messages/{id}."""

from typing import Annotated, Any, Literal

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from pydantic import Field
from rest_framework.request import Request

from messaging.api.common import (
    Identifier,
    Output,
    Time,
    answer,
    caller,
    page,
)
from messaging.api.openapi import query, responses
from messaging.domain.statuses import Status
from messaging.reports import queries
from rme.core import errors
from rme.core.http.api import ApiView
from rme.core.http.fields import (
    ENUMERATED,
    CategoryName,
    ChannelName,
    Cursor,
    Limit,
    Query,
    QueryInstant,
    RecordId,
    Upper,
    cursor_of,
    read_cursor,
)

StatusName = Annotated[Status, ENUMERATED]


class HistoryQuery(Query):
    """The query of GET /messages."""

    contact_id: RecordId | None = None
    since: QueryInstant | None = None
    until: QueryInstant | None = None
    status: Annotated[StatusName, Upper] | None = None
    channel: ChannelName | None = None
    category: CategoryName | None = None
    limit: Limit = 50
    cursor: Cursor | None = None


class DetailQuery(Query):
    """The query of GET /messages/{id}."""

    include: Literal["trace"] | None = Field(
        default=None, description="`trace`: why the message went as it did."
    )


class ReasonOutput(Output):
    code: str
    message: str


class DeliveryOutput(Output):
    contact_id: str
    status: StatusName
    resolved_channel: str | None
    provider: str | None
    scheduled_for: Time | None
    waiting: str | None = Field(
        description="Why it waits: PAUSED, PROVIDER, RATE, PLATFORM or QUIET_HOURS."
    )
    error: ReasonOutput | None


class EventOutput(Output):
    type: str = Field(examples=["sent", "delivered", "open"])
    at: Time
    contact_id: str
    channel: str | None = None
    provider: str | None = None
    detail: dict[str, Any] | None = None


class TemplateOutput(Output):
    name: str
    language: str | None


class SummaryOutput(Output):
    """A message without its events."""

    message_id: Identifier
    status: StatusName
    channel: str | None
    category: str
    template: TemplateOutput | None
    provider: str | None
    scheduled_for: Time | None
    created_at: Time
    error: ReasonOutput | None
    metadata: dict[str, str]
    test: bool
    recipients: list[DeliveryOutput]


class StepOutput(Output):
    """One step of the trace; docs/messages.md says what each may hold."""

    at: Time
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


class ListMessages(ApiView):
    """Query the history."""

    query_parameters = {"GET": HistoryQuery.parameters()}

    @extend_schema(
        operation_id="list_messages",
        summary="Query the history, newest first",
        description="Return a page of the history, newest first.",
        parameters=query(HistoryQuery),
        responses=responses({200: HistoryOutput}, ()),
    )
    def get(self, request: Request) -> HttpResponse:
        """Return a page of the history, newest first."""
        filters = HistoryQuery.read(request.query_params.dict())
        history = queries.history(
            caller(request).organization.id,
            queries.HistoryFilter(
                contact_id=filters.contact_id,
                since=filters.since,
                until=filters.until,
                status=filters.status,
                channel=filters.channel,
                category=filters.category,
                limit=filters.limit,
                cursor=read_cursor(filters.cursor),
                test=caller(request).test,
            ),
        )
        fields = {"messages": history.messages}
        return page(request, HistoryOutput, fields, cursor_of(history.following))


class ReadMessage(ApiView):
    """Read one message."""

    query_parameters = {"GET": DetailQuery.parameters()}

    @extend_schema(
        operation_id="get_message",
        summary="Get a message with its events",
        description="Return a message with its events, and its trace if the query includes it.",
        parameters=query(DetailQuery),
        responses=responses({200: DetailedOutput}, (errors.NotFound,)),
    )
    def get(self, request: Request, message_id: str) -> HttpResponse:
        """Return a message with its events, and its trace if the query includes it."""
        options = DetailQuery.read(request.query_params.dict())
        detail = queries.detail(
            caller(request).organization.id,
            message_id,
            with_trace=options.include is not None,
            test=caller(request).test,
        )
        summary = SummaryOutput.model_validate(detail.message)
        fields = {**dict(summary), "events": detail.events, "trace": detail.trace}
        return answer(DetailedOutput.model_validate(fields))
