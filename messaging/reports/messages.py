"""Messages as the API shows them: one with its events and trace, and the history in pages."""

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

from messaging.models.statuses import Status, aggregate
from messaging.reports import message_rows, trace
from messaging.reports.cursors import cursor_of
from messaging.reports.history import HistoryFilter, find
from messaging.reports.message_rows import DeliveryRow, MessageRow, StoredEvent
from rme.core import errors, ids
from rme.core.db.clock import iso


class ReasonView(TypedDict):
    code: str
    message: str


class TemplateView(TypedDict):
    name: str
    language: str | None


class RecipientView(TypedDict):
    """One recipient of a message."""

    contactId: str
    status: str
    resolvedChannel: str | None
    provider: str | None
    scheduledFor: str | None
    waiting: str | None
    error: ReasonView | None


class EventView(TypedDict):
    """One event of a message."""

    type: str
    at: str | None
    contactId: str
    channel: NotRequired[str]
    provider: NotRequired[str]
    detail: NotRequired[dict[str, object]]


class MessageView(TypedDict):
    """A message; with `events` if it is shown alone, and with `trace` on request."""

    messageId: str
    status: str
    channel: str | None
    category: str
    template: TemplateView | None
    provider: str | None
    scheduledFor: str | None
    createdAt: str | None
    error: ReasonView | None
    metadata: dict[str, str]
    test: bool
    recipients: list[RecipientView]
    events: NotRequired[list[EventView]]
    trace: NotRequired[list[trace.RecipientTrace]]


def detail(organization_id: str, message_id: str, *, with_trace: bool = False) -> MessageView:
    """Return one message with its events: three queries, six with its trace. Raises NotFound."""
    identifier = ids.parse(message_id)
    messages = message_rows.read_messages(organization_id, [identifier]) if identifier else []
    if not messages or identifier is None:
        raise errors.NotFound("There is no such message.")
    deliveries = message_rows.read_deliveries([identifier])[identifier]
    contacts = {row.id: row.contact_id for row in deliveries}
    view = _message(messages[0], deliveries)
    view["events"] = [
        _event(row, contacts[row.delivery_id])
        for row in message_rows.read_events(identifier)
        if row.delivery_id in contacts
    ]
    if with_trace:
        view["trace"] = trace.of_message(organization_id, identifier)
    return view


def history(organization_id: str, wanted: HistoryFilter) -> tuple[list[MessageView], str | None]:
    """Return a page of messages, newest first, and the cursor of the next page.

    Three queries; a fourth with a filter that has no index.
    """
    page, following = find(organization_id, wanted)
    messages = message_rows.read_messages(organization_id, page)
    deliveries = message_rows.read_deliveries(page)
    views = [_message(message, deliveries[message.id]) for message in messages]
    return views, cursor_of(following) if following else None


def _message(message: MessageRow, deliveries: Sequence[DeliveryRow]) -> MessageView:
    times = sorted(row.scheduled_for for row in deliveries if row.scheduled_for)
    channels = {row.channel for row in deliveries}
    providers = {row.provider for row in deliveries}
    template = message.template
    return {
        "messageId": str(message.id),
        "status": aggregate(row.status for row in deliveries),
        "channel": channels.pop() if len(channels) == 1 else None,
        "category": message.category,
        "template": {"name": template, "language": message.language} if template else None,
        "provider": providers.pop() if len(providers) == 1 else None,
        "scheduledFor": iso(times[0]) if times else None,
        "createdAt": iso(message.created_at),
        "error": _reason(deliveries[0]) if len(deliveries) == 1 else None,
        "metadata": message.metadata or {},
        "test": message.test,
        "recipients": [_recipient(row) for row in deliveries],
    }


def _recipient(row: DeliveryRow) -> RecipientView:
    return {
        "contactId": row.contact_id,
        "status": row.status,
        "resolvedChannel": row.channel,
        "provider": row.provider,
        "scheduledFor": iso(row.scheduled_for),
        "waiting": row.waiting if row.status == Status.ACCEPTED else None,
        "error": _reason(row),
    }


_WITH_REASON = {Status.FAILED, Status.BLOCKED, Status.EXPIRED, Status.UNKNOWN}


def _reason(row: DeliveryRow) -> ReasonView | None:
    if row.status not in _WITH_REASON or not row.reason:
        return None
    return {"code": row.reason, "message": row.detail or ""}


def _event(row: StoredEvent, contact_id: str) -> EventView:
    event: EventView = {"type": row.type, "at": iso(row.at), "contactId": contact_id}
    if row.channel:
        event["channel"] = row.channel
    if row.provider:
        event["provider"] = row.provider
    if row.detail:
        event["detail"] = row.detail
    return event


class RecipientResult(TypedDict):
    """One recipient in a send result: an error has the fields of an API error."""

    contactId: str
    status: str
    resolvedChannel: str | None
    provider: str | None
    scheduledFor: str | None
    error: Mapping[str, object] | None


class SendResult(TypedDict):
    """A message in the form in which the send request answers."""

    messageId: str
    status: str
    resolvedChannel: str | None
    provider: str | None
    scheduledFor: str | None
    recipients: NotRequired[list[RecipientResult]]


def send_result(organization_id: str, message_id: str, *, request_id: str) -> SendResult:
    """Return a message in the form in which the send request answers. Raises NotFound."""
    view = detail(organization_id, message_id)
    result: SendResult = {
        "messageId": view["messageId"],
        "status": view["status"],
        "resolvedChannel": view["channel"],
        "provider": view["provider"],
        "scheduledFor": view["scheduledFor"],
    }
    if len(view["recipients"]) > 1:
        result["recipients"] = [
            _recipient_result(row, message_id, request_id) for row in view["recipients"]
        ]
    return result


def _recipient_result(row: RecipientView, message_id: str, request_id: str) -> RecipientResult:
    rest = {"messageId": message_id, "requestId": request_id, "details": []}
    return {
        "contactId": row["contactId"],
        "status": row["status"],
        "resolvedChannel": row["resolvedChannel"],
        "provider": row["provider"],
        "scheduledFor": row["scheduledFor"],
        "error": {**row["error"], **rest} if row["error"] else None,
    }
