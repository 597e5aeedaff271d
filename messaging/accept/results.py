"""The results of accepting as values, and their JSON.

Their JSON is here and not in the view, because an idempotency key stores it for later requests.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

import orjson

from messaging.accept.refusals import error_of
from messaging.domain.planning import Plan, RecipientPlan
from messaging.domain.statuses import aggregate
from messaging.store.idempotency import StoredAnswer
from rme.core import errors
from rme.core.db.clock import iso
from rme.core.http.request_records import NO_DETAILS, Details

JsonObject = dict[str, object]


@dataclass(frozen=True, slots=True)
class RecipientError:
    """Why one of several recipients gets nothing: a code of the contract and its text."""

    code: str
    message: str
    details: Sequence[errors.Detail] = ()


class RecipientResult(NamedTuple):
    """One recipient's part of a send result."""

    contact_id: str
    status: str
    resolved_channel: str | None
    provider: str | None
    scheduled_for: datetime | None
    error: RecipientError | None

    def as_json(self, message_id: str | None, request_id: str) -> JsonObject:
        error = self.error
        return {
            "contactId": self.contact_id,
            "status": self.status,
            "resolvedChannel": self.resolved_channel,
            "provider": self.provider,
            "scheduledFor": iso(self.scheduled_for),
            "error": error
            and {
                "code": error.code,
                "message": error.message,
                "messageId": message_id,
                "requestId": request_id,
                "details": [detail.as_json() for detail in error.details],
            },
        }


class _JsonResult:
    """Base of the results that are written as JSON: at most once each."""

    def as_json(self) -> JsonObject:
        raise NotImplementedError

    @cached_property
    def body(self) -> bytes:
        """The JSON text, as the API answers with it and an idempotency key stores it."""
        return orjson.dumps(self.as_json())


@dataclass(frozen=True)
class SendResult(_JsonResult):
    """A message that was accepted for at least one recipient."""

    message_id: str | None
    """None in a dry run, which stores no message."""
    status: str
    resolved_channel: str | None
    provider: str | None
    """Channel and provider are None where they differ between recipients."""
    scheduled_for: datetime | None
    recipients: Sequence[RecipientResult]
    request_id: str
    """The request that was answered: errors name it."""
    status_code: int = 202
    warnings: Sequence[errors.Detail] = ()

    def as_json(self) -> JsonObject:
        shown: JsonObject = {
            "messageId": self.message_id,
            "status": self.status,
            "resolvedChannel": self.resolved_channel,
            "provider": self.provider,
            "scheduledFor": iso(self.scheduled_for),
        }
        if len(self.recipients) > 1:
            shown["recipients"] = [
                recipient.as_json(self.message_id, self.request_id) for recipient in self.recipients
            ]
        if self.warnings:
            shown["warnings"] = [warning.as_json() for warning in self.warnings]
        return shown


@dataclass(frozen=True)
class Refusal(_JsonResult):
    """A request that was refused. The error names the message if one was stored."""

    error: errors.ApiError
    request_id: str

    @property
    def status_code(self) -> int:
        return self.error.status

    def as_json(self) -> JsonObject:
        return {"error": self.error.as_json(self.request_id)}


def result_of(plan: Plan, message_id: str | None, request_id: str) -> SendResult | Refusal:
    """Build the result of a plan that is stored as a message, or of a dry run.

    A message without any recipient to send to is refused with its first recipient's error.
    """
    planned = plan.recipients
    remaining = [recipient for recipient in planned if recipient.refusal is None]
    if not remaining:
        refusal = next(r.refusal for r in planned if r.refusal is not None)
        return Refusal(error_of(refusal, message_id=message_id), request_id)
    shown = [recipient_result(recipient) for recipient in planned]
    warnings = [errors.Detail(*warning) for warning in plan.outline.warnings]
    if len(shown) == 1:  # as most are: nothing to aggregate
        (only,) = shown
        return SendResult(
            message_id=message_id,
            status=only.status,
            resolved_channel=only.resolved_channel,
            provider=only.provider,
            scheduled_for=only.scheduled_for,
            recipients=shown,
            request_id=request_id,
            warnings=warnings,
        )
    times = [r.scheduled_for for r in remaining if r.scheduled_for]
    return SendResult(
        message_id=message_id,
        status=aggregate(recipient.status for recipient in planned),
        resolved_channel=_common(r.chosen and r.chosen.channel for r in remaining),
        provider=_common(r.provider for r in remaining),
        scheduled_for=min(times, default=None),
        recipients=shown,
        request_id=request_id,
        warnings=warnings,
    )


def recipient_result(recipient: RecipientPlan) -> RecipientResult:
    """Build the result of one recipient of a plan."""
    error = error_of(recipient.refusal) if recipient.refusal else None
    return RecipientResult(
        contact_id=recipient.draft.requested.contact_id,
        status=recipient.status,
        resolved_channel=recipient.chosen.channel if recipient.chosen else None,
        provider=recipient.provider,
        scheduled_for=recipient.scheduled_for,
        error=RecipientError(error.code, error.message, error.details) if error else None,
    )


def _common(values: Iterable[str | None]) -> str | None:
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


def read(answer: StoredAnswer) -> SendResult | Refusal:
    """Return an answer as it was before it was stored, without the single recipients."""
    shown: Any = orjson.loads(answer.body)
    if error := shown.get("error"):
        details = [errors.Detail(each["field"], each["message"]) for each in error["details"]]
        raised = errors.by_code()[error["code"]](
            error["message"], details=details, message_id=error["messageId"]
        )
        return Refusal(raised, error["requestId"])
    scheduled_for = shown["scheduledFor"]
    return SendResult(
        message_id=shown["messageId"],
        status=shown["status"],
        resolved_channel=shown["resolvedChannel"],
        provider=shown["provider"],
        scheduled_for=datetime.fromisoformat(scheduled_for) if scheduled_for else None,
        recipients=(),
        request_id="",
        status_code=answer.status_code,
    )


Result = SendResult | Refusal | StoredAnswer


@dataclass(frozen=True)
class BulkResult(_JsonResult):
    """The results of the messages of a bulk, in their order."""

    results: Sequence[Result]
    status_code: int = field(default=202, init=False)

    def as_json(self) -> JsonObject:
        accepted = sum(result.status_code < 300 for result in self.results)
        return {
            "accepted": accepted,
            "rejected": len(self.results) - accepted,
            "results": [
                orjson.Fragment(b'{"index":%d,%b' % (index, result.body[1:]))
                for index, result in enumerate(self.results)
            ],
        }


def headers_of(result: Result | BulkResult) -> Mapping[str, str]:
    """Return the response headers that belong to a result."""
    match result:
        case Refusal(error=error):
            return error.headers
        case StoredAnswer():
            return {"Idempotent-Replayed": "true"}
    return {}


def details_of(result: Result | BulkResult) -> Details:
    """Return what the request log has of a result: its message, and the code of its error."""
    match result:
        case SendResult(message_id=message_id):
            return Details(message_id=message_id)
        case Refusal(error=error):
            return Details(error.code, error.message_id)
    return NO_DETAILS
