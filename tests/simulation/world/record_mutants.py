"""Defects of what is recorded: traces, webhook deliveries, counts, consent, and decisions."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any
from unittest.mock import patch
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from messaging.accept import acceptance, cancel
from messaging.consent import ledger
from messaging.delivery import late_outcomes, manual_review, record
from messaging.delivery.next_steps import OutgoingDelivery
from messaging.models import Delivery, derived_events
from messaging.models.statuses import EventType, Status
from rme.core.outcomes import Accepted, Misconfigured, Rejected


@contextmanager
def _trace_by_one_clock() -> Iterator[None]:
    """The trace of a message leaves out what a process whose clock is behind has recorded."""

    class Ids:
        @staticmethod
        def earliest_concurrent(identifier: UUID) -> UUID:
            return identifier

    with patch.object(derived_events, "ids", Ids):
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
    real = late_outcomes.store_late

    def store(deliveries: Sequence[OutgoingDelivery], *given: Any) -> None:
        for attempt in (each for delivery in deliveries for each in delivery.attempts):
            if isinstance(attempt.outcome, Accepted):
                attempt.outcome = Rejected("late")
        real(deliveries, *given)

    with patch.object(late_outcomes, "store_late", store):
        yield


@contextmanager
def _cancels_all() -> Iterator[None]:
    """A message is cancelled whatever its status is."""

    def cancel_all(organization_id: str, deliveries: QuerySet[Delivery]) -> set[UUID]:
        found = set(deliveries.values_list("pk", flat=True))
        deliveries.update(status=Status.CANCELLED, due_at=None)
        return found

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
    real = record.event_steps

    def steps(*given: Any) -> Any:
        return {**real(*given), "derived_webhook_deliveries": None}

    with patch.object(record, "event_steps", steps):
        yield


@contextmanager
def _chain_without_lock() -> Iterator[None]:
    """Decisions are appended to the consent ledger without the lock of its chain."""

    def lock(organization_id: str) -> datetime:
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            now: datetime = cursor.fetchone()[0]
        return now

    with patch.object(ledger, "_lock_chain", lock):
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


RECORD_MUTANTS: Mapping[str, Any] = {
    "trace by one clock": _trace_by_one_clock,
    "failovers without an event": _no_failovers,
    "fallbacks without an event": _no_fallbacks,
    "late outcomes are rejections": _late_is_rejected,
    "cancels what was sent": _cancels_all,
    "reviews twice": _reviews_twice,
    "no webhooks of derived events": _no_derived_webhooks,
    "chain without its lock": _chain_without_lock,
    "lost keys are errors": _lost_keys_are_errors,
    "an outcome ends the task": _outcome_ends_the_task,
}
