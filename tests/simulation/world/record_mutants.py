"""Defects of what is recorded: traces, webhook deliveries, counts, consent, and decisions."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from messaging.accept import acceptance, cancel
from messaging.consent import gate_lock, suppressions
from messaging.delivery import deliver, manual_review, record, sweeper
from messaging.delivery.late_outcomes import LateOutcomes
from messaging.delivery.outgoing import OutgoingDelivery
from messaging.domain.statuses import EventType, Status
from messaging.feedback import inbound_sms
from messaging.models import Delivery
from messaging.statistics import minutes
from messaging.store import attempts, event_view
from messaging.store.events import EventRow, write_events
from rme.core.db import clock
from rme.core.db.prepared_statements import Batch
from rme.core.outcomes import Accepted, Misconfigured, Rejected
from tests.simulation.world.turns import current


@contextmanager
def _trace_by_one_clock() -> Iterator[None]:
    """A message's trace leaves out the records of a process whose clock is behind."""

    class Ids:
        @staticmethod
        def earliest_concurrent(identifier: UUID) -> UUID:
            return identifier

    with patch.object(event_view, "ids", Ids):
        yield


def _without_event(kind: EventType) -> AbstractContextManager[object]:
    real = OutgoingDelivery._add_event

    def add(delivery: OutgoingDelivery, event: EventType, *given: Any) -> None:
        if event is not kind:
            real(delivery, event, *given)

    return patch.object(OutgoingDelivery, "_add_event", add)


def _no_failovers() -> AbstractContextManager[object]:
    """A failover to the next account is not recorded."""
    return _without_event(EventType.FAILOVER)


def _no_fallbacks() -> AbstractContextManager[object]:
    """A worker's fallback to the next channel is not recorded."""
    return _without_event(EventType.FALLBACK)


@contextmanager
def _late_is_rejected() -> Iterator[None]:
    """An outcome that comes late is stored as a rejection."""
    real = LateOutcomes.store_late

    def store(late: LateOutcomes, deliveries: Sequence[OutgoingDelivery], *given: Any) -> None:
        for attempt in (each for delivery in deliveries for each in delivery.attempts):
            if isinstance(attempt.outcome, Accepted):
                attempt.outcome = Rejected("late")
        real(late, deliveries, *given)

    with patch.object(LateOutcomes, "store_late", store):
        yield


@contextmanager
def _cancels_all() -> Iterator[None]:
    """A message is cancelled whatever its status is."""

    def cancel_all(organization_id: str, deliveries: QuerySet[Delivery]) -> set[UUID]:
        rows = list(deliveries.values_list("pk", "message_id", "channel", "test"))
        deliveries.update(status=Status.CANCELLED, due_at=None)
        kind, now = EventType.CANCELLED, clock.now()
        write_events(
            [
                EventRow(organization_id, of, key, kind, now, channel=on, test=is_test)
                for key, of, on, is_test in rows
            ]
        )
        return {key for key, *_ in rows}

    with patch.object(cancel, "_cancel", cancel_all):
        yield


@contextmanager
def _reviews_twice() -> Iterator[None]:
    """A second decision on a delivery is recorded as if it had changed something."""
    real = manual_review.apply_transitions

    def apply(transitions: Sequence[Any]) -> set[UUID]:
        real(transitions)
        return {each.id for each in transitions}

    undecided = Q(status__in=(Status.UNKNOWN, Status.ACCEPTED, Status.FAILED))
    with (
        patch.object(manual_review, "HELD", undecided),
        patch.object(manual_review, "apply_transitions", apply),
    ):
        yield


@contextmanager
def _no_derived_webhooks() -> Iterator[None]:
    """Events for which an attempt stands have no webhook deliveries."""
    real = attempts.event_steps

    def steps(*given: Any) -> Any:
        return {**real(*given), "derived_webhook_deliveries": None}

    with patch.object(attempts, "event_steps", steps):
        yield


@contextmanager
def _chain_without_lock() -> Iterator[None]:
    """Decisions are appended to the consent ledger without the lock of its chain."""

    def lock(organization_id: str) -> datetime:
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            now: datetime = cursor.fetchone()[0]
        return now

    with patch.object(gate_lock, "take_chain", lock):
        yield


def _lost_keys_are_errors() -> AbstractContextManager[object]:
    """A call that loses its idempotency key to a concurrent one is not decided again."""
    return patch.object(acceptance, "IntegrityError", KeyError)


@contextmanager
def _outcome_ends_the_task() -> Iterator[None]:
    """An outcome for which no next step is known ends the worker's task."""
    real = OutgoingDelivery.apply_outcomes

    def apply(delivery: OutgoingDelivery, **given: Any) -> None:
        if any(isinstance(each.outcome, Misconfigured) for each in delivery.attempts):
            raise KeyError("Misconfigured")
        real(delivery, **given)

    with patch.object(OutgoingDelivery, "apply_outcomes", apply):
        yield


@contextmanager
def _counted_once() -> Iterator[None]:
    """A minute is not counted again once late commits are in."""
    real, until = minutes._count, datetime.min.replace(tzinfo=UTC)

    def count(start: datetime, end: datetime) -> None:
        nonlocal until
        if start < end and end > until:
            real(max(start, until), end)
            until = end

    with patch.object(minutes, "_count", count):
        yield


@contextmanager
def _resends_without_event() -> Iterator[None]:
    """The sweeper resends unknown outcomes and does not record it."""
    real = sweeper.write_events

    def write(rows: Sequence[EventRow]) -> None:
        real([each for each in rows if each.type is not EventType.DEFERRED])

    with patch.object(sweeper, "write_events", write):
        yield


class _NoSuppressions:
    """`consent.suppressions` that adds none."""

    NewSuppression, remove = suppressions.NewSuppression, staticmethod(suppressions.remove)

    @staticmethod
    def suppress(_: object) -> None:
        """Do nothing."""


def _bounces_are_forgotten() -> AbstractContextManager[object]:
    """An address that a provider refuses as dead is not suppressed."""
    return patch.object(record, "suppressions", _NoSuppressions)


def _stop_suppresses_nothing() -> AbstractContextManager[object]:
    """STOP is in the ledger, and its number is not suppressed."""
    return patch.object(inbound_sms, "suppressions", _NoSuppressions)


@contextmanager
def _lock_is_raised() -> Iterator[None]:
    """A worker that shares the gates' lock with others takes it for itself, too."""
    real, shared = record.record, dict[object, Collection[str]]()

    class GateLock:
        @staticmethod
        def take_shared(organization_ids: Collection[str], batch: Batch) -> None:
            gate_lock.take_shared(organization_ids, batch)
            shared[current()] = organization_ids

    def write(decided: Any, outcomes: Any, batch: Batch, *begun: Any) -> Any:
        changed = real(decided, outcomes, batch, *begun)
        gate_lock.take_exclusive(shared.pop(current(), ()), batch)
        return changed

    with patch.object(deliver, "gate_lock", GateLock), patch.object(record, "record", write):
        yield


RECORD_MUTANTS: Mapping[str, Any] = {
    "trace by one clock": _trace_by_one_clock,
    "failovers without an event": _no_failovers,
    "fallbacks without an event": _no_fallbacks,
    "late outcomes are rejections": _late_is_rejected,
    "cancels sent messages": _cancels_all,
    "reviews twice": _reviews_twice,
    "no webhooks of derived events": _no_derived_webhooks,
    "chain without its lock": _chain_without_lock,
    "lost keys are errors": _lost_keys_are_errors,
    "an outcome ends the task": _outcome_ends_the_task,
    "minutes are counted once": _counted_once,
    "resends without an event": _resends_without_event,
    "hard bounces are forgotten": _bounces_are_forgotten,
    "STOP suppresses nothing": _stop_suppresses_nothing,
    "a lock is raised": _lock_is_raised,
}
