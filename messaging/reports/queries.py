"""Reading messages: one with its events, and pages of the history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils.translation import gettext as _

from messaging.domain.statuses import Status, aggregate
from messaging.models import Delivery, Event, Message
from messaging.reports import trace
from messaging.reports.trace import RecipientTrace
from messaging.store.archived import archive
from messaging.store.lookups import of_messages
from messaging.store.reports.history import HistoryFilter, find
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
    archived: bool = False


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """Messages, newest first, and the cursor of the next page; None on the last."""

    messages: Sequence[MessageSummary]
    following: UUID | None


def detail(
    organization_id: str, message_id: str, *, with_trace: bool = False, test: bool = False
) -> MessageDetail:
    """Return one message with its events; three queries, four with its trace. Raises NotFound.

    If a message isn't in PostgreSQL, it is read from the archive, if there is one. `test`: only
    find TEST messages.
    """
    key = ids.parse(message_id)
    if key is None:
        raise errors.NotFound(_("This message doesn't exist."))
    messages = Message.objects.filter(organization_id=organization_id, pk=key)
    message, archived = messages.first(), None
    recorded = trace.record_of(key) if message else None
    if message is None or (archive().may_be_moving(key) and not messages.exists()):
        archived = archive().find(Q(organization_id=organization_id), key)
        if archived is not None:
            message, recorded = archived.message, trace.of_archived(archived)
    if message is None or recorded is None or (test and not message.test):
        raise errors.NotFound(_("This message doesn't exist."))
    return MessageDetail(
        message=_summary(message, recorded.deliveries),
        events=[_event(event, delivery) for event, delivery in recorded.events],
        trace=trace.of_record(recorded) if with_trace else None,
        archived=archived is not None,
    )


def history(organization_id: str, query: HistoryFilter) -> HistoryPage:
    """Return a page of messages, newest first.

    Three queries; a fourth with a filter that has no index. With an archive, one more, or two.
    """
    page, following = find(organization_id, query)
    messages = Message.objects.filter(organization_id=organization_id, pk__in=page)
    deliveries: dict[UUID, list[Delivery]] = {identifier: [] for identifier in page}
    rows = Delivery.objects.filter(of_messages(page)).defer("trace")
    for row in rows.order_by("position"):
        deliveries[row.message_id].append(row)
    # A message that is archived in this moment may have lost its deliveries.
    summaries = [
        _summary(row, its_deliveries)
        for row in messages.order_by("-pk")
        if (its_deliveries := deliveries[row.pk])
    ]
    return _with_archived(organization_id, query, HistoryPage(summaries, following))


def _with_archived(organization_id: str, query: HistoryFilter, page: HistoryPage) -> HistoryPage:
    """Return a page with the messages of the archive that belong on it.

    They may lie between those of PostgreSQL, which keeps old messages that ended late. A page ends
    where either of the two has not been read further.
    """
    least = [page.following, ids.at_least(query.since) if query.since else None]
    ends = [query.cursor, ids.at_least(query.until) if query.until else None]
    archived = archive().page(
        organization_id,
        since=max(filter(None, least), default=None),
        end=min(filter(None, ends), default=None),
        contacts=[query.contact_id] if query.contact_id else [],
        matches=lambda record: query.matches(record.message, record.deliveries),
        limit=query.limit + 1,
    )
    by_id = {each.message.pk: _summary(each.message, each.deliveries) for each in archived.records}
    by_id |= {each.message_id: each for each in page.messages}
    borders = [each for each in (page.following, archived.border) if each is not None]
    border = max(borders, default=None)
    keys = sorted((key for key in by_id if border is None or key >= border), reverse=True)
    if len(keys) > query.limit:
        keys = keys[: query.limit]
        border = keys[-1]
    return HistoryPage([by_id[key] for key in keys], border)


def _summary(message: Message, deliveries: Sequence[Delivery]) -> MessageSummary:
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
        metadata=message.metadata or {},
        test=message.test,
        recipients=[_recipient(row) for row in deliveries],
    )


def _recipient(row: Delivery) -> DeliverySummary:
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


def _error(row: Delivery) -> FailureReason | None:
    if row.status not in _FAILED or not row.reason:
        return None
    return FailureReason(row.reason, row.detail or "")


def _event(row: Event, delivery: Delivery) -> MessageEvent:
    return MessageEvent(
        type=row.type,
        at=row.at,
        contact_id=delivery.contact_id,
        channel=row.channel or None,
        provider=row.provider or None,
        detail=row.detail or None,
    )
