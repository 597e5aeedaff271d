"""The answer of POST /messages to a dry run."""

from dataclasses import asdict
from typing import Any

from pydantic import Field

from messaging.accept import dry_run, results
from messaging.api.common import ErrorObject, Output, Time, error_object
from messaging.api.messages.history import StatusName, StepOutput
from messaging.content import rendering
from rme.core.provider import Content, Email, Push, Sms


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


def output(outcome: dry_run.DryRun) -> DryRunOutput:
    """Build the answer to a dry run."""
    result = outcome.result
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
            "recipients": [_dry_recipient(recipient, outcome) for recipient in outcome.recipients],
        }
    )


def _dry_recipient(
    recipient: dry_run.RecipientDryRun, outcome: dry_run.DryRun
) -> dict[str, object]:
    fields = recipient.result.as_json(None, outcome.result.request_id)
    if not outcome.planned:
        fields |= {"status": None, "resolvedChannel": None, "provider": None}
    content = recipient.content and _content(recipient.content)
    return {
        **fields,
        "trace": recipient.trace,
        "content": content,
        "renderError": recipient.render_error,
    }


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
