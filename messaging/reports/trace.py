"""The trace of a message: the steps of each recipient, in the order in which they came.

The decisions at accept are stored on the delivery, in short form (`ChannelDecision`). All other
steps are read from the attempts and events. A step has `at`, `step`, `channel` and `result`, and
the further fields that are known:

| step | result | more |
|---|---|---|
| DECISION | CHOSEN, QUIET_HOURS, or the code that excluded the channel | `entry`, `until` |
| DECISION | SEND_AGAIN, GIVE_UP: a person's, in manual review | `detail` |
| DECISION | RESEND: the category's, after an unknown outcome | `detail`: which resend it is |
| ATTEMPT | the outcome, see below; null: not known yet | `provider`, `providerId`, `detail`, `latencyMs`, `deviceId` |
| GATE | the code of the pre-send check that refused at the moment of sending | `entry` |
| WAIT | PAUSED, PROVIDER, RATE, or the provider's reason | `provider`, `until` |
| FAILOVER, FALLBACK | why the next account, or the next channel, was tried | `provider`, `entry` |

Outcomes are ACCEPTED, RETRYABLE, REJECTED, GONE, MISCONFIGURED and UNKNOWN. `entry` is the id of
the suppression or consent entry that decided.
"""  # noqa: E501 (a table)

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, NotRequired, TypedDict, cast
from uuid import UUID

from messaging.models import Attempt, Delivery
from messaging.models.decisions import CHOSEN, QUIET_HOURS, ChannelDecision
from messaging.models.statuses import EventType, Status
from messaging.reports.message_rows import StoredEvent, read_events
from rme.core.db.clock import iso

_STEP_OF = {
    EventType.BLOCKED: "GATE",
    EventType.DEFERRED: "WAIT",
    EventType.FAILOVER: "FAILOVER",
    EventType.FALLBACK: "FALLBACK",
}


class Step(TypedDict):
    """A step of the trace. Fields other than `result` are absent if they are not known."""

    at: str | None
    step: str
    result: str | None
    channel: NotRequired[str]
    entry: NotRequired[str]
    until: NotRequired[str]
    provider: NotRequired[str]
    providerId: NotRequired[str]
    detail: NotRequired[str]
    latencyMs: NotRequired[int]
    deviceId: NotRequired[str]


class RecipientTrace(TypedDict):
    """The steps of one recipient."""

    contactId: str
    steps: list[Step]


class _DeliveryRow(NamedTuple):
    """A delivery, with its stored decisions."""

    id: UUID
    contact_id: str
    channel: str | None
    status: str
    waiting: str | None
    due_at: datetime | None
    updated_at: datetime
    trace: list[tuple[str, str, str | None]] | None


class _AttemptRow(NamedTuple):
    """An attempt of a delivery."""

    delivery_id: UUID
    started_at: datetime
    channel: str
    provider: str | None
    outcome: str | None
    reason: str | None
    provider_id: str | None
    latency_ms: int | None
    device_id: UUID | None


_TimedStep = tuple[datetime, Step]


def of_message(organization_id: str, message_id: UUID) -> list[RecipientTrace]:
    """Return the steps of each recipient; three queries."""
    deliveries = _read_deliveries(organization_id, message_id)
    events: dict[UUID, list[StoredEvent]] = {row.id: [] for row in deliveries}
    for event in read_events(message_id):
        if event.delivery_id in events:
            events[event.delivery_id].append(event)
    attempts: dict[UUID, list[_AttemptRow]] = {row.id: [] for row in deliveries}
    for attempt in _read_attempts(attempts):
        attempts[attempt.delivery_id].append(attempt)
    return [
        {"contactId": row.contact_id, "steps": _steps(row, events[row.id], attempts[row.id])}
        for row in deliveries
    ]


def _read_deliveries(organization_id: str, message_id: UUID) -> list[_DeliveryRow]:
    rows = Delivery.objects.filter(organization_id=organization_id, message_id=message_id)
    columns = _DeliveryRow._fields
    return [_DeliveryRow(*row) for row in rows.order_by("position").values_list(*columns)]


def _read_attempts(delivery_ids: Iterable[UUID]) -> list[_AttemptRow]:
    rows = Attempt.objects.filter(delivery_id__in=list(delivery_ids)).order_by("id")
    return [_AttemptRow(*row) for row in rows.values_list(*_AttemptRow._fields)]


def _steps(
    delivery: _DeliveryRow, events: Sequence[StoredEvent], attempts: Sequence[_AttemptRow]
) -> list[Step]:
    """Return a recipient's steps by time. The first event is that of accept."""
    accepted, later = events[0], events[1:]
    steps: list[_TimedStep] = [
        (accepted.at, step) for step in decisions(accepted.at, _decisions_of(delivery, accepted))
    ]
    if delivery.status == Status.ACCEPTED and delivery.waiting:
        wait = _step(
            delivery.updated_at,
            "WAIT",
            delivery.waiting,
            channel=delivery.channel,
            until=iso(delivery.due_at),
        )
        steps.append((delivery.updated_at, wait))
    steps += [(event.at, step) for event in later if (step := _of_event(event))]
    steps += [(attempt.started_at, _of_attempt(attempt)) for attempt in attempts]
    return [step for _, step in sorted(steps, key=lambda timed: timed[0])]


def _decisions_of(delivery: _DeliveryRow, accepted: StoredEvent) -> list[ChannelDecision]:
    """Return the decisions at accept; a delivery that stores none got the requested channel."""
    if delivery.trace:
        return [ChannelDecision(*decision) for decision in delivery.trace]
    return [ChannelDecision(accepted.channel or delivery.channel or "", CHOSEN)]


def decisions(at: datetime, stored: Iterable[ChannelDecision]) -> list[Step]:
    """Return the steps of the decisions at accept."""
    return [
        _step(
            at,
            "DECISION",
            decision.result,
            channel=decision.channel or None,
            **{("until" if decision.result == QUIET_HOURS else "entry"): decision.detail},
        )
        for decision in stored
    ]


def _of_event(event: StoredEvent) -> Step | None:
    """Return the step of an event; None if it is not part of the trace."""
    detail = event.detail or {}
    if "decision" in detail:
        return _step(
            event.at,
            "DECISION",
            detail["decision"],
            channel=event.channel,
            detail=detail["reason"],
        )
    if (name := _STEP_OF.get(EventType(event.type))) is None:
        return None
    return _step(
        event.at,
        name,
        detail.get("reason"),
        channel=event.channel,
        provider=event.provider,
        entry=detail.get("entry"),
    )


def _of_attempt(attempt: _AttemptRow) -> Step:
    return _step(
        attempt.started_at,
        "ATTEMPT",
        attempt.outcome.upper() if attempt.outcome else None,
        channel=attempt.channel,
        provider=attempt.provider,
        providerId=attempt.provider_id,
        detail=attempt.reason,
        latencyMs=attempt.latency_ms,
        deviceId=str(attempt.device_id) if attempt.device_id else None,
    )


def _step(at: datetime, name: str, result: object, **more: object) -> Step:
    """Build a step of the fields that are known."""
    known = {field: value for field, value in more.items() if value is not None}
    return cast(Step, {"at": iso(at), "step": name, "result": result, **known})
