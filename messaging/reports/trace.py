"""Why a message was sent as it was: the steps of each recipient, in order of time.

The decisions of accept are stored on the delivery (`messaging.models.decisions`). All other steps
are read from the attempts and events, which are stored anyway. The fields of a step that are not
None, besides `at`, `step`, `channel` and `result`:

| step | result | more |
|---|---|---|
| DECISION | CHOSEN, QUIET_HOURS, or the code that excluded the channel | `entry`, `until` |
| DECISION | SEND_AGAIN, GIVE_UP: a person's, in manual review | `detail` |
| DECISION | RESEND: the category's, of an unknown outcome | `detail`: which resend it is |
| ATTEMPT | ACCEPTED, RETRYABLE, REJECTED, GONE, MISCONFIGURED, UNKNOWN; None: no outcome yet | `provider`, `provider_id`, `detail`, `latency_ms`, `device_id` |
| GATE | the code with which a gate refused at the moment of sending | `entry` |
| WAIT | PAUSED, PROVIDER, RATE, or the provider's reason | `provider`, `until` |
| FAILOVER, FALLBACK | why the next account, or the next channel, was used | `provider`, `entry` |

`entry` is the id of the suppression or consent entry that decided.
"""  # noqa: E501 (a table)

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.db import connection

from messaging.models import Attempt, Delivery, Event
from messaging.models.decisions import CHOSEN, QUIET_HOURS, ChannelDecision
from messaging.models.statuses import EventType, Status
from rme.core import ids
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


class _TracedDelivery(NamedTuple):
    id: UUID
    contact_id: str
    channel: str
    status: str
    waiting: str | None
    due_at: datetime | None
    updated_at: datetime
    trace: str | None


class _AttemptRow(NamedTuple):
    delivery_id: UUID
    started_at: datetime
    channel: str
    provider: str
    outcome: str | None
    reason: str | None
    provider_id: str | None
    latency_ms: int | None
    device_id: UUID | None


class _TracedEvent(NamedTuple):
    delivery_id: UUID
    at: datetime
    type: str
    channel: str | None
    provider: str | None
    detail: str | None


_EVENTS = {
    EventType.BLOCKED: "GATE",
    EventType.DEFERRED: "WAIT",
    EventType.FAILOVER: "FAILOVER",
    EventType.FALLBACK: "FALLBACK",
}
_DELIVERIES = f"""
SELECT {", ".join(_TracedDelivery._fields)}
FROM {Delivery._meta.db_table} WHERE organization_id = %s AND message_id = %s ORDER BY position
"""
_ATTEMPTS = f"""
SELECT {", ".join(_AttemptRow._fields)}
FROM {Attempt._meta.db_table} WHERE delivery_id = ANY(%s) ORDER BY id
"""
_MESSAGE_EVENTS = f"""
SELECT {", ".join(_TracedEvent._fields)}
FROM {Event._meta.db_table} WHERE message_id = %s AND id >= %s ORDER BY at, id
"""


def of_message(organization_id: str, message_id: UUID) -> list[RecipientTrace]:
    """Return the trace of each recipient, in their order; three queries."""
    with connection.cursor() as cursor:
        cursor.execute(_DELIVERIES, [organization_id, message_id])
        deliveries = [_TracedDelivery(*row) for row in cursor.fetchall()]
        steps: dict[UUID, list[TraceStep]] = {delivery.id: [] for delivery in deliveries}
        cursor.execute(_MESSAGE_EVENTS, [message_id, ids.earliest_concurrent(message_id)])
        events = [
            event for row in cursor.fetchall() if (event := _TracedEvent(*row)).delivery_id in steps
        ]
        cursor.execute(_ATTEMPTS, [list(steps)])
        attempts = [_AttemptRow(*row) for row in cursor.fetchall()]
    first = {event.delivery_id: event for event in reversed(events)}  # those that accept wrote
    for delivery in deliveries:
        steps[delivery.id] += _of_delivery(delivery, first[delivery.id])
    for event in events:
        if event is not first[event.delivery_id] and (step := _of_event(event)):
            steps[event.delivery_id].append(step)
    for attempt in attempts:
        steps[attempt.delivery_id].append(_of_attempt(attempt))
    return [
        RecipientTrace(delivery.contact_id, sorted(steps[delivery.id], key=attrgetter("at")))
        for delivery in deliveries
    ]


def decisions(at: datetime, made: Iterable[ChannelDecision]) -> list[TraceStep]:
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
        for decision in made
    ]


def _of_delivery(delivery: _TracedDelivery, accepted: _TracedEvent) -> list[TraceStep]:
    if delivery.trace:
        made = [ChannelDecision(*decision) for decision in orjson.loads(delivery.trace)]
    else:
        made = [ChannelDecision(accepted.channel or delivery.channel, CHOSEN)]
    steps = decisions(accepted.at, made)
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


def _of_event(event: _TracedEvent) -> TraceStep | None:
    detail: dict[str, Any] = orjson.loads(event.detail) if event.detail else {}
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


def _of_attempt(attempt: _AttemptRow) -> TraceStep:
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
