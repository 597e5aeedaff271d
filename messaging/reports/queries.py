"""Reading messages: one with its events, and pages of the history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.db import connection

from messaging.models import Delivery, Event, Message
from messaging.models.statuses import Status, aggregate
from messaging.reports import trace
from messaging.reports.history import HistoryFilter, find
from messaging.reports.trace import RecipientTrace
from rme.core import errors, ids

__all__ = [
    "DeliverySummary",
    "FailureReason",
    "HistoryFilter",
    "HistoryPage",
    "MessageDetail",
    "MessageEvent",
    "MessageSummary",
    "TemplateName",
    "detail",
    "history",
]

_M, _D, _E = (model._meta.db_table for model in (Message, Delivery, Event))


@dataclass(frozen=True, slots=True)
class FailureReason:
    """Why a delivery failed: a code of the contract or of the provider, and a text."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class TemplateName:
    """The template that a message names, and the language if it names one."""

    name: str
    language: str | None


@dataclass(frozen=True, slots=True)
class DeliverySummary:
    """One recipient of a message."""

    contact_id: str
    status: str
    resolved_channel: str | None
    provider: str | None
    scheduled_for: datetime | None
    waiting: str | None
    """Why an accepted delivery waits."""
    error: FailureReason | None


@dataclass(frozen=True, slots=True)
class MessageSummary:
    """A message without its events. What differs between its recipients is None."""

    message_id: UUID
    status: str
    channel: str | None
    category: str
    template: TemplateName | None
    provider: str | None
    scheduled_for: datetime | None
    created_at: datetime
    error: FailureReason | None
    """Of a message with one recipient."""
    metadata: Mapping[str, str]
    test: bool
    recipients: Sequence[DeliverySummary]


@dataclass(frozen=True, slots=True)
class MessageEvent:
    """An event of one recipient. `detail` depends on the type."""

    type: str
    at: datetime
    contact_id: str
    channel: str | None
    provider: str | None
    detail: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class MessageDetail:
    """A message with its events, and with its trace if that was requested."""

    message: MessageSummary
    events: Sequence[MessageEvent]
    trace: Sequence[RecipientTrace] | None = None


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """Messages, newest first, and the cursor of the next page; None on the last."""

    messages: Sequence[MessageSummary]
    following: UUID | None


class _MessageRow(NamedTuple):
    id: UUID
    category: str
    template: str | None
    language: str | None
    metadata: str | None
    test: bool
    created_at: datetime


class _DeliveryRow(NamedTuple):
    message_id: UUID
    contact_id: str
    status: str
    channel: str
    provider: str | None
    reason: str | None
    detail: str | None
    waiting: str | None
    scheduled_for: datetime | None


class _EventRow(NamedTuple):
    type: str
    at: datetime
    contact_id: str
    channel: str | None
    provider: str | None
    detail: str | None


_MESSAGES = f"""
SELECT {", ".join(_MessageRow._fields)}
FROM {_M} WHERE organization_id = %s AND id = ANY(%s) ORDER BY id DESC
"""
_DELIVERIES = f"""
SELECT {", ".join(_DeliveryRow._fields)}
FROM {_D} WHERE message_id = ANY(%s) ORDER BY message_id, position
"""
_EVENTS = f"""
SELECT e.type, e.at, d.contact_id, e.channel, e.provider, e.detail
FROM {_E} e JOIN {_D} d ON d.id = e.delivery_id
WHERE e.message_id = %s AND e.id >= %s ORDER BY e.at, e.id
"""


def detail(organization_id: str, message_id: str, *, with_trace: bool = False) -> MessageDetail:
    """Return one message with its events; three queries, six with its trace. Raises NotFound."""
    found = ids.parse(message_id)
    messages = _messages(organization_id, [found]) if found else []
    if found is None or not messages:
        raise errors.NotFound("There is no such message.")
    (message,) = messages
    deliveries = _deliveries([found])
    with connection.cursor() as cursor:
        cursor.execute(_EVENTS, [found, ids.earliest_concurrent(found)])
        events = [_event(_EventRow(*row)) for row in cursor.fetchall()]
    return MessageDetail(
        message=_summary(message, deliveries[found]),
        events=events,
        trace=trace.of_message(organization_id, found) if with_trace else None,
    )


def history(organization_id: str, wanted: HistoryFilter) -> HistoryPage:
    """Return a page of messages, newest first.

    Three queries; a fourth with a filter that has no index.
    """
    page, following = find(organization_id, wanted)
    messages = _messages(organization_id, page)
    deliveries = _deliveries(page)
    return HistoryPage([_summary(row, deliveries[row.id]) for row in messages], following)


def _messages(organization_id: str, message_ids: Sequence[UUID]) -> list[_MessageRow]:
    with connection.cursor() as cursor:
        cursor.execute(_MESSAGES, [organization_id, list(message_ids)])
        return [_MessageRow(*row) for row in cursor.fetchall()]


def _deliveries(message_ids: Sequence[UUID]) -> dict[UUID, list[_DeliveryRow]]:
    found: dict[UUID, list[_DeliveryRow]] = {identifier: [] for identifier in message_ids}
    with connection.cursor() as cursor:
        cursor.execute(_DELIVERIES, [list(message_ids)])
        for row in cursor.fetchall():
            delivery = _DeliveryRow(*row)
            found[delivery.message_id].append(delivery)
    return found


def _summary(message: _MessageRow, deliveries: Sequence[_DeliveryRow]) -> MessageSummary:
    times = [row.scheduled_for for row in deliveries if row.scheduled_for]
    channels = {row.channel for row in deliveries}
    providers = {row.provider for row in deliveries}
    return MessageSummary(
        message_id=message.id,
        status=aggregate(row.status for row in deliveries),
        channel=channels.pop() if len(channels) == 1 else None,
        category=message.category,
        template=TemplateName(message.template, message.language) if message.template else None,
        provider=providers.pop() if len(providers) == 1 else None,
        scheduled_for=min(times, default=None),
        created_at=message.created_at,
        error=_error(deliveries[0]) if len(deliveries) == 1 else None,
        metadata=orjson.loads(message.metadata) if message.metadata else {},
        test=message.test,
        recipients=[_recipient(row) for row in deliveries],
    )


def _recipient(row: _DeliveryRow) -> DeliverySummary:
    return DeliverySummary(
        contact_id=row.contact_id,
        status=row.status,
        resolved_channel=row.channel,
        provider=row.provider,
        scheduled_for=row.scheduled_for,
        waiting=row.waiting if row.status == Status.ACCEPTED else None,
        error=_error(row),
    )


_FAILED = {Status.FAILED, Status.BLOCKED, Status.EXPIRED, Status.UNKNOWN}


def _error(row: _DeliveryRow) -> FailureReason | None:
    if row.status not in _FAILED or not row.reason:
        return None
    return FailureReason(row.reason, row.detail or "")


def _event(row: _EventRow) -> MessageEvent:
    return MessageEvent(
        type=row.type,
        at=row.at,
        contact_id=row.contact_id,
        channel=row.channel or None,
        provider=row.provider or None,
        detail=orjson.loads(row.detail) if row.detail else None,
    )
