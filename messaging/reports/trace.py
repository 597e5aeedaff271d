"""Why a message was sent as it was: the steps of each recipient, in order of time.

The decisions of accept are stored on the delivery (`messaging.domain.planning`). All other steps
are read from the attempts and events, which are recorded anyway. The fields of a step that are not
None, besides `at`, `step`, `channel` and `result`:

| step | result | more |
|---|---|---|
| DECISION | CHOSEN, QUIET_HOURS, or the code that excluded the channel | `entry`, `until` |
| DECISION | SEND_AGAIN, GIVE_UP: a person's, in manual review | `detail` |
| DECISION | RESEND: the category's, of an unknown outcome | `detail`: which resend it is |
| ATTEMPT | ACCEPTED, RETRYABLE, REJECTED, GONE, MISCONFIGURED, UNKNOWN; None: no outcome yet | `provider`, `provider_id`, `detail`, `latency_ms`, `device_id` |
| GATE | the code with which a gate refused at the moment of sending | `entry` |
| WAIT | a `WaitReason`: what it waits for now | `until` |
| WAIT | why it was put off before: a reason of the provider's or the service's | `provider` |
| FAILOVER, FALLBACK | why the next account, or the next channel, was used | `provider`, `entry` |

`entry` is the id of the suppression or consent entry that decided.
"""  # noqa: E501 (a table)

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from messaging.domain.planning import CHOSEN, QUIET_HOURS, ChannelDecision
from messaging.domain.statuses import EventType, Status
from messaging.models import Attempt, Delivery, Event
from messaging.store import attempts, event_view, lookups
from messaging.store.archived import ArchivedMessage
from rme.core.db.clock import iso


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One step of a recipient's trace; the module's table has the fields of each kind."""

    at: datetime
    step: str
    result: str | None
    channel: str | None = None
    entry: str | None = None
    until: str | None = None
    """ISO 8601, UTC."""
    provider: str | None = None
    provider_id: str | None = None
    device_id: str | None = None
    detail: str | None = None
    latency_ms: int | None = None


@dataclass(frozen=True, slots=True)
class RecipientTrace:
    """The steps of one recipient."""

    contact_id: str
    steps: Sequence[TraceStep]


class MessageRecord(NamedTuple):
    """What is stored of a message: its deliveries, and its events, each with its delivery."""

    deliveries: Sequence[Delivery]
    events: Sequence[tuple[Event, Delivery]]
    attempts: Sequence[Attempt] | None = None
    """Of an archived message; None: they are in PostgreSQL."""


_EVENTS = {
    EventType.BLOCKED: "GATE",
    EventType.DEFERRED: "WAIT",
    EventType.FAILOVER: "FAILOVER",
    EventType.FALLBACK: "FALLBACK",
}


def record_of(message_id: UUID) -> MessageRecord:
    """Read the deliveries of a message, in their order, and its events; two queries."""
    rows = Delivery.objects.filter(lookups.of_message(message_id))
    deliveries = {row.pk: row for row in rows.order_by("position")}
    events = event_view.of_message(message_id, list(deliveries))
    event_pairs = [
        (row, deliveries[row.delivery_id]) for row in events if row.delivery_id in deliveries
    ]
    return MessageRecord(list(deliveries.values()), event_pairs)


def of_archived(archived: ArchivedMessage) -> MessageRecord:
    """Return what the archive has of a message."""
    by_id = {row.pk: row for row in archived.deliveries}
    rows = event_view.of_rows(archived.deliveries, archived.attempts, archived.events)
    events = [(row, by_id[row.delivery_id]) for row in rows]
    return MessageRecord(archived.deliveries, events, archived.attempts)


def of_record(record: MessageRecord) -> list[RecipientTrace]:
    """Return the trace of each recipient, in their order; one query, none for an archived one."""
    first = {delivery.pk: event for event, delivery in reversed(record.events)}  # written by accept
    steps = {row.pk: _of_delivery(row, first[row.pk]) for row in record.deliveries}
    for event, delivery in record.events:
        if event is not first[delivery.pk] and (step := _of_event(event)):
            steps[delivery.pk].append(step)
    archived = record.attempts
    for attempt in attempts.read(steps) if archived is None else attempts.plain(archived):
        steps[attempt.delivery_id].append(_of_attempt(attempt))
    return [
        RecipientTrace(row.contact_id, sorted(steps[row.pk], key=attrgetter("at")))
        for row in record.deliveries
    ]


def decisions(at: datetime, channel_decisions: Iterable[ChannelDecision]) -> list[TraceStep]:
    """Return the steps of what was decided at accept."""
    return [
        TraceStep(
            at=at,
            step="DECISION",
            result=decision.result,
            channel=decision.channel,
            until=decision.detail if decision.result == QUIET_HOURS else None,
            entry=decision.detail if decision.result != QUIET_HOURS else None,
        )
        for decision in channel_decisions
    ]


def _of_delivery(delivery: Delivery, accepted: Event) -> list[TraceStep]:
    if delivery.trace:
        channel_decisions = [ChannelDecision(*decision) for decision in delivery.trace]
    else:
        channel_decisions = [ChannelDecision(accepted.channel or delivery.channel, CHOSEN)]
    steps = decisions(accepted.at, channel_decisions)
    if delivery.status == Status.ACCEPTED and delivery.waiting:
        steps.append(
            TraceStep(
                at=delivery.updated_at,
                step="WAIT",
                result=delivery.waiting,
                channel=delivery.channel,
                until=iso(delivery.due_at),
            )
        )
    return steps


def _of_event(event: Event) -> TraceStep | None:
    detail: dict[str, Any] = event.detail or {}
    if "decision" in detail:
        return TraceStep(
            at=event.at,
            step="DECISION",
            result=detail["decision"],
            channel=event.channel,
            detail=detail["reason"],
        )
    if (name := _EVENTS.get(EventType(event.type))) is None:
        return None
    return TraceStep(
        at=event.at,
        step=name,
        result=detail.get("reason"),
        channel=event.channel,
        provider=event.provider,
        entry=detail.get("entry"),
    )


def _of_attempt(attempt: Attempt) -> TraceStep:
    return TraceStep(
        at=attempt.started_at,
        step="ATTEMPT",
        result=attempt.outcome.upper() if attempt.outcome else None,
        channel=attempt.channel,
        provider=attempt.provider,
        provider_id=attempt.provider_id,
        detail=attempt.reason,
        latency_ms=attempt.latency_ms,
        device_id=str(attempt.device_id) if attempt.device_id else None,
    )
