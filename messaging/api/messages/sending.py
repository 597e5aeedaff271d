"""Sending and cancelling: POST /messages, POST /messages/bulk and DELETE /messages/{id}.

The JSON of a send result is written by `messaging.accept.results`, since an idempotency key stores
it. Its models here describe it.
"""

from dataclasses import asdict
from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import Field, RootModel
from rest_framework.request import Request

from messaging.accept import (
    RECIPIENTS_LIMIT,
    Call,
    Submission,
    accept,
    accept_bulk,
    cancel,
    dry_run,
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
    answer,
    body_of,
    caller,
    error_object,
    read_each,
    request_id,
)
from messaging.api.messages.history import StatusName, StepOutput
from messaging.api.messages.single_sends import read_message
from messaging.api.openapi import WITH_BODY, query, responses
from messaging.content import rendering
from rme.core import errors
from rme.core.http.api import ApiView, json_response
from rme.core.http.fields import Query, Switch
from rme.core.http.parsing import parse
from rme.core.provider import Content, Email, Push, Sms
from rme.core.telemetry import tracing


class SendQuery(Query):
    """The query of POST /messages."""

    dry_run: Switch = Field(
        default=False,
        description="Check, decide and render the message: nothing is stored or sent.",
    )


class RecipientOutput(Output):
    contact_id: str
    status: StatusName
    resolved_channel: str | None
    provider: str | None
    scheduled_for: Time | None = Field(description="ISO 8601, UTC.")
    error: ErrorObject | None


class SendOutput(Output):
    """The send result. `recipients` is there where there is more than one."""

    message_id: str
    status: StatusName
    resolved_channel: str | None
    provider: str | None
    scheduled_for: Time | None = Field(description="ISO 8601, UTC.")
    recipients: list[RecipientOutput] | None = None


class DryRunRecipientOutput(Output):
    """What a recipient would get."""

    contact_id: str
    status: StatusName | None
    resolved_channel: str | None
    provider: str | None
    scheduled_for: Time | None
    error: ErrorObject | None
    trace: list[StepOutput]
    content: dict[str, Any] | None = Field(description="What would be handed over, by channel.")
    render_error: str | None = Field(description="Why the text could not be rendered.")


class DryRunOutput(Output):
    """The result of a dry run. Nothing was stored, so nothing has a `messageId`.

    The fields of the send result that it would have had stand here and in `result`; they are null
    where it would be refused.
    """

    message_id: None
    status: StatusName | None
    resolved_channel: str | None
    provider: str | None
    scheduled_for: Time | None = Field(description="ISO 8601, UTC.")
    would_send: bool
    result: dict[str, Any] | None = Field(description="The send result that it would have had.")
    error: ErrorObject | None
    recipients: list[DryRunRecipientOutput]


class BulkItemOutput(Output):
    """The send result of one item, or its error."""

    index: int
    message_id: str | None = None
    status: StatusName | None = None
    resolved_channel: str | None = None
    provider: str | None = None
    scheduled_for: Time | None = None
    recipients: list[RecipientOutput] | None = None
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


class SendMessage(ApiView):
    """Send a message, or only decide and render it."""

    query_parameters = {"POST": SendQuery.parameters()}

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
        who, identifier = caller(request), request_id(request)
        message, key = read_message(body_of(request), request.headers.get("Idempotency-Key"))
        if SendQuery.read(request.query_params.dict()).dry_run:
            return answer(_dry_run(dry_run.dry_run(who, message, request_id=identifier)))
        seconds = waiting.seconds(request.headers.get("Prefer"))
        wait = waiting.until_sent(who.organization.id, seconds) if seconds else None
        result = accept(
            Call(who, Submission(message, key), identifier, tracing.active()), wait=wait
        )
        response = _answer(result)
        if seconds and not isinstance(result, results.StoredAnswer):
            response["Preference-Applied"] = f"wait={seconds}"
        return response


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
        organization_id, identifier = caller(request).organization.id, request_id(request)
        cancel.cancel(organization_id, message_id)
        return _answer(results.of_message(organization_id, message_id, request_id=identifier))


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


def _dry_run(done: dry_run.DryRun) -> DryRunOutput:
    result = done.result
    sent = result if isinstance(result, results.SendResult) else None
    return DryRunOutput.model_validate(
        {
            "message_id": None,
            "status": sent and sent.status,
            "resolved_channel": sent and sent.resolved_channel,
            "provider": sent and sent.provider,
            "scheduled_for": sent and sent.scheduled_for,
            "would_send": sent is not None,
            "result": sent and sent.as_json(),
            "error": error_object(result.error, result.request_id)
            if isinstance(result, results.Refusal)
            else None,
            "recipients": [_dry_recipient(one, done) for one in done.recipients],
        }
    )


def _dry_recipient(one: dry_run.RecipientDryRun, done: dry_run.DryRun) -> dict[str, object]:
    shown = one.result.as_json(None, done.result.request_id)
    if not done.planned:
        shown |= {"status": None, "resolvedChannel": None, "provider": None}
    content = one.content and _content(one.content)
    return {**shown, "trace": one.trace, "content": content, "renderError": one.render_error}


def _content(content: Content) -> dict[str, object]:
    match content:
        case Email(subject=subject, text=text, html=html):
            sender = {"name": content.from_name, "address": content.from_address}
            return {"from": sender, "subject": subject, "text": text, "html": html or None}
        case Sms(text=text):
            return {"text": text, "sms": asdict(rendering.segments(text))}
        case Push(title=title, body=body):
            return {
                "title": title,
                "body": body,
                "data": dict(content.data),
                "badge": content.badge,
                "image": content.image or None,
                "link": content.link or None,
            }
