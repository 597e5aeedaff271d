"""Attempts: written before they are made, and their outcomes with the deliveries' new statuses."""

from collections.abc import Collection, Iterable, Sequence
from copy import copy
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from messaging.domain.progress.transitions import Transition
from messaging.models import Attempt
from messaging.store.encodings import (
    attempt_message_id,
    message_id_of,
    provider_id_of,
    short_provider_id,
    storable,
)
from messaging.store.events import DeliveryEvents, event_steps, rows_of
from messaging.store.feedback import references
from messaging.store.feedback.references import NewReference
from messaging.store.transitions import transition_step
from push import feedback
from push.feedback import DeviceOutcome
from rme.core.db import prepared_statements, sql

_TRANSITIONS, _OUTCOMES = "transitions", "outcomes"
"""The names of two steps."""
# An attempt stands for the event `sent` if its delivery became SENT by the same statement. It keeps
# the event if its outcome is stored again, because the answer to the first commit was lost.
_BECAME = f"t.delivery_id = ANY(ARRAY(SELECT id FROM {_TRANSITIONS}))"
_SENT_AT = f"coalesce(t.sent_at, CASE WHEN {_BECAME} THEN r.sent_at END)"
_NEWLY_SENT = f"RETURNING CASE WHEN t.sent_at IS NOT NULL AND {_BECAME} THEN t.id END AS id"
_NONE_SENT = "RETURNING NULL::uuid AS id"
# Plan: the primary key, in the partitions that the bounds of the keys name.
# Run by: store, for delivery.record
REMOVE = f"DELETE FROM {Attempt._meta.db_table} WHERE {sql.among('id', 'attempts')}"

# Plan: reads no table, only the step before it.
# Run by: store, for delivery.record
COUNT_CHANGED = f"SELECT count(*) FROM {_TRANSITIONS}"


class NewAttempt(NamedTuple):
    """An attempt that is about to be made."""

    id: str
    organization_id: str
    message_id: str
    delivery_id: str
    fence: int
    channel: str
    provider: str
    account_id: int | None
    device_id: str | None
    started_at: datetime


class AttemptResult(NamedTuple):
    """The outcome of an attempt."""

    id: str
    organization_id: str
    delivery_id: str
    outcome: str
    """An `OutcomeKind`."""
    reason: str
    provider_id: str
    latency_ms: int | None


class AttemptOutcomes(NamedTuple):
    """What has become known of attempts since they were written."""

    results: Sequence[AttemptResult] = ()
    references: Sequence[NewReference] = ()
    device_outcomes: Sequence[DeviceOutcome] = ()
    """Of push: which devices were reached, or are gone."""
    not_made: Sequence[str] = ()
    """The ids of attempts that were not made after all."""


def read(delivery_ids: Collection[UUID]) -> list[Attempt]:
    """Return the attempts of deliveries in their order, with plain values; one query."""
    return plain(Attempt.objects.filter(delivery_id__in=delivery_ids).order_by("pk"))


def plain(attempts: Iterable[Attempt]) -> list[Attempt]:
    """Return copies of attempts that have the ids of their messages and of providers in full."""
    copies = []
    for attempt in map(copy, attempts):
        attempt.provider_id = provider_id_of(attempt)
        attempt.message_id = message_id_of(attempt)
        copies.append(attempt)
    return copies


def store(
    transitions: Sequence[Transition],
    outcomes: AttemptOutcomes,
    events: Sequence[DeliveryEvents],
    now: datetime,
    batch: prepared_statements.Batch,
    *,
    begun: Sequence[NewAttempt] = (),
) -> prepared_statements.PendingRows:
    """Add a statement to a batch that writes new statuses, events and outcomes, and attempts that
    are about to be made; return the count of the deliveries that changed.

    Events are written of those deliveries alone.
    """
    not_made = outcomes.not_made
    rows, derived = rows_of(events, now)
    sent = {event.id for event in derived}
    return sql.send(
        {
            _TRANSITIONS: transition_step(transitions),
            _OUTCOMES: _result_step(outcomes.results, sent, now),
            "provider_references": references.insert_step(outcomes.references),
            "feedback": feedback.insert_statement(outcomes.device_outcomes),
            "not_made": sql.bind(REMOVE, sql.keys("attempts", not_made)) if not_made else None,
            "attempts": _insert_step(begun),
            **event_steps(rows, _TRANSITIONS, derived, _OUTCOMES),
            "answer": sql.Step(COUNT_CHANGED) if transitions else None,
        },
        batch,
    )


def _insert_step(attempts: Sequence[NewAttempt]) -> sql.Step | None:
    """Return the step that writes attempts before they are made."""
    # Key by key, which costs 0.3 µs an attempt less than `_asdict()`.
    rows = [
        {
            "id": attempt.id,
            "organization_id": attempt.organization_id,
            "message_id": attempt_message_id(attempt.delivery_id, attempt.message_id),
            "delivery_id": attempt.delivery_id,
            "fence": attempt.fence,
            "channel": attempt.channel,
            "provider": attempt.provider,
            "account_id": attempt.account_id,
            "device_id": attempt.device_id,
            "started_at": attempt.started_at,
        }
        for attempt in attempts
    ]
    return sql.insert_step(Attempt, rows)


def _result_step(
    results: Sequence[AttemptResult], sent: Collection[str], now: datetime
) -> sql.Step | None:
    """Return the step that writes outcomes, and returns the attempts that stand for an event: of
    those in `sent`, if their deliveries changed.
    """
    rows = [
        {
            "id": result.id,
            "organization_id": result.organization_id,
            "outcome": result.outcome,
            "reason": storable(result.reason[:200]) if result.reason else None,
            "provider_id": _stored_id(result.provider_id, result.delivery_id),
            "latency_ms": result.latency_ms,
            "sent_at": now if result.id in sent else None,
        }
        for result in results
    ]
    return sql.update_partitioned_step(
        Attempt,
        rows,
        {"sent_at": _SENT_AT} if sent else {},
        _NEWLY_SENT if sent else _NONE_SENT,
    )


def _stored_id(provider_id: str, delivery_id: str) -> str | None:
    if not provider_id:
        return None
    return short_provider_id(storable(provider_id[:255]), delivery_id)[:255] or None
