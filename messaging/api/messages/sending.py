"""Sending and cancelling: POST /messages, POST /messages/bulk and DELETE /messages/{id}.

The JSON of a send result is written by `messaging.accept.results`, since an idempotency key stores
it. Its models here describe it.
"""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import Field, RootModel
from rest_framework.request import Request

from messaging.accept import (
    RECIPIENTS_LIMIT,
    Submission,
    accept_bulk,
    cancel,
    idempotency,
    results,
    waiting,
)
from messaging.accept.requests import (
    BULK,
    BULK_ITEM,
    BulkInput,
    BulkItem,
    MessageInput,
)
from messaging.api.common import (
    ErrorObject,
    Output,
    Time,
    caller,
    read_each,
    request_id,
)
from messaging.api.messages.dry_runs import DryRunOutput
from messaging.api.messages.history import StatusName
from messaging.api.messages.single_sends import SINGLE_SENDS, SendQuery
from messaging.api.openapi import WITH_BODY, query, responses
from rme.core import errors
from rme.core.http.api import ApiView, json_response
from rme.core.http.parsing import parse
from rme.core.http.set_frame import SetView


class RecipientOutput(Output):
    contact_id: str
    status: StatusName
    resolved_channel: str | None
    provider: str | None
    scheduled_for: Time | None = Field(description="ISO 8601, UTC.")
    error: ErrorObject | None


class WarningOutput(Output):
    """An accepted field of the request that has no effect on some channel."""

    field: str
    message: str


class SendOutput(Output):
    """The send result. `recipients` is there where there is more than one."""

    message_id: str
    status: StatusName
    resolved_channel: str | None
    provider: str | None
    scheduled_for: Time | None = Field(description="ISO 8601, UTC.")
    recipients: list[RecipientOutput] | None = None
    warnings: list[WarningOutput] | None = None


class BulkItemOutput(Output):
    """The send result of one item, or its error."""

    index: int
    message_id: str | None = None
    status: StatusName | None = None
    resolved_channel: str | None = None
    provider: str | None = None
    scheduled_for: Time | None = None
    recipients: list[RecipientOutput] | None = None
    warnings: list[WarningOutput] | None = None
    error: ErrorObject | None = None


class BulkOutput(Output):
    accepted: int
    rejected: int
    results: list[BulkItemOutput]


class SentOrDryRun(RootModel[SendOutput | DryRunOutput]):
    """With `Prefer: wait` the send result of what has left; with `dryRun` what would be sent."""


KEY_ERRORS = (errors.IdempotencyInProgress, errors.IdempotencyKeyReused)
SEND_ERRORS = (
    errors.NoConsent,
    errors.Suppressed,
    errors.FrequencyCapped,
    errors.NotFound,
    errors.TemplateNotFound,
    errors.Unreachable,
    errors.ProviderError,
)

KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "maxLength": 255, "pattern": '^(?!""$)[!-~]([ -~]*[!-~])?$'},
    OpenApiParameter.HEADER,
    description="The same key within 24 hours gives the first answer again and sends nothing.",
)

PREFER = OpenApiParameter(
    "Prefer",
    {"type": "string", "examples": ["wait=10"]},
    OpenApiParameter.HEADER,
    description="`wait=N` (RFC 7240): answer when the message has left or failed, after at most N "
    "(30) seconds.",
)


def add_bulk_items(
    result: dict[str, Any], generator: object, request: object, public: bool
) -> dict[str, object]:
    """Add the schema of a bulk's items, which the envelope only refers to (a hook)."""
    schema = BulkItem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas = result["components"]["schemas"]
    for name, part in schema.pop("$defs", {}).items():
        schemas.setdefault(name, part)
    schemas["BulkItem"] = schema
    messages = schemas["BulkInput"]["properties"]["messages"]
    messages["items"] = {"$ref": "#/components/schemas/BulkItem"}
    return result


class SendMessage(SetView):
    """Send a message, or only decide and render it."""

    frame = SINGLE_SENDS

    @extend_schema(
        operation_id="send_message",
        summary="Send a message",
        description="Accept one message; with `dryRun=true` it is only checked and rendered.",
        parameters=[KEY, PREFER, *query(SendQuery)],
        request={"application/json": MessageInput},
        responses=responses(
            {200: SentOrDryRun, 202: SendOutput}, (*WITH_BODY, *KEY_ERRORS, *SEND_ERRORS)
        ),
    )
    def post(self, request: Request) -> HttpResponse:
        """Accept one message; with `dryRun=true` only decide and render it."""
        return self.answer(request)


class BulkView(ApiView):
    """Send up to 500 messages by one call."""

    @extend_schema(
        operation_id="send_messages",
        summary="Send up to 500 messages",
        parameters=[KEY],
        request={"application/json": BulkInput},
        responses=responses({202: BulkOutput}, (*WITH_BODY, *KEY_ERRORS)),
    )
    def post(self, request: Request) -> HttpResponse:
        """Accept the messages of a bulk; one bad item fails no other."""
        key = idempotency.key_of(request.headers.get("Idempotency-Key"), request.data)
        envelope = parse(BULK, request.data)
        submissions = [
            Submission(item) if isinstance(item, errors.ApiError) else item
            for item in read_each(request, envelope.messages, _submission)
        ]
        _limit_recipients(submissions)
        return _answer(
            accept_bulk(caller(request), submissions, key=key, request_id=request_id(request))
        )


class CancelMessage(ApiView):
    """Cancel a scheduled message."""

    @extend_schema(
        operation_id="cancel_message",
        summary="Cancel a scheduled message",
        responses=responses({200: SendOutput}, (errors.NotFound, errors.NotCancellable)),
    )
    def delete(self, request: Request, message_id: str) -> HttpResponse:
        """Cancel a message that is scheduled."""
        who, identifier = caller(request), request_id(request)
        organization_id = who.organization.id
        cancel.cancel(organization_id, message_id, by=who)
        return _answer(waiting.read_result(organization_id, message_id, request_id=identifier))


def _answer(result: results.Result | results.BulkResult) -> HttpResponse:
    headers, details = results.headers_of(result), results.details_of(result)
    return json_response(result.body, result.status_code, headers, details)


def _submission(item: Any) -> Submission:
    message = parse(BULK_ITEM, item)
    if message.idempotency_key is None:
        return Submission(message)
    body = {name: value for name, value in item.items() if name != "idempotencyKey"}
    return Submission(message, idempotency.key_of(message.idempotency_key, body))


def _limit_recipients(submissions: list[Submission]) -> None:
    count = sum(len(s.message.to) for s in submissions if isinstance(s.message, MessageInput))
    if count > RECIPIENTS_LIMIT:
        raise errors.InvalidPayload.at(
            "messages", f"{count} recipients in all; at most {RECIPIENTS_LIMIT}"
        )
