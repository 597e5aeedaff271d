"""Manual review: deliveries with an unknown outcome that a person decides.

A delivery is in manual review if it is UNKNOWN and not due at any time (`due_at` is null): the
category's `on_unknown` is HOLD, or all resends are used up. A late receipt ends the review, or a
person's decision. After the database was restored to a moment in the past, `hold_doubtful` puts
there what may have left since.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from messaging.domain.progress.transitions import Transition
from messaging.domain.statuses import EventType, Status, StatusReason
from messaging.models import Delivery
from messaging.policy import organization_policy
from messaging.store import due_work
from messaging.store.due_work import NewDueTime
from messaging.store.events import EventRow, write_events
from messaging.store.transitions import apply_transitions
from rme.core.db import clock
from rme.tenants import audit
from rme.tenants.audit import Action, Actor

HELD = Q(status=Status.UNKNOWN, due_at__isnull=True)
_BATCH = 1000
_LEASE_MARGIN = timedelta(minutes=1)
_TO_UNKNOWN = {
    Status.SCHEDULED: (Status.ACCEPTED, Status.SENDING, Status.UNKNOWN),
    Status.ACCEPTED: (Status.SENDING, Status.UNKNOWN),
    Status.SENDING: (Status.UNKNOWN,),
}
"""The transitions by which a delivery gets there as if a worker had claimed it and died."""


class Decision(StrEnum):
    """What a person may decide for a delivery in manual review."""

    SEND_AGAIN = "SEND_AGAIN"
    GIVE_UP = "GIVE_UP"


_EVENTS = {
    Decision.SEND_AGAIN: EventType.ACCEPTED,
    Decision.GIVE_UP: EventType.FAILED,
}


def decide(
    organization_id: str,
    delivery_ids: Collection[UUID],
    decision: Decision,
    *,
    reason: str,
    actor: Actor,
) -> set[UUID]:
    """Apply a decision to deliveries in manual review; return the ids of those that changed.

    The others stay unchanged: a receipt was first, or another person. Each change has an event, and
    an entry with the reason in the audit. The number of statements does not depend on the
    number of deliveries.
    """
    with transaction.atomic():
        # PostgreSQL checks the condition again after waiting for a receipt's lock. Rows are locked
        # in the order in which receipts lock them, so that the two cannot deadlock.
        rows = Delivery.objects.filter(HELD, organization_id=organization_id, pk__in=delivery_ids)
        rows_to_decide = list(rows.order_by("pk").select_for_update())
        now = clock.now()
        changed = apply_transitions([_transition(row, decision, now) for row in rows_to_decide])
        decided = [row for row in rows_to_decide if row.pk in changed]
        write_events([_event(row, decision, reason, now) for row in decided])
        changes: audit.Values = {"decision": ["held", str(decision)]}
        entries = [
            audit.about(row, Action.DECIDED, changes=changes, reason=reason) for row in decided
        ]
        audit.record(actor, entries)
    return changed


def doubtful(until: datetime) -> Q:
    """Return the condition of deliveries that a service that ended at `until` may have sent, while
    this older database has no trace of it: those that were due until then and have not ended.
    """
    condition = Q()
    for status, moment in _moments(until).items():
        condition |= Q(status=status, due_at__lte=moment)
    return condition


def hold_doubtful(until: datetime, reason: str) -> Counter[tuple[str, str]]:
    """Put what is doubtful into manual review, in batches that commit; return how many, by
    organization and the status they had.

    A delivery that was SENT stays so and loses its fallback: it may have been confirmed since. The
    workers must not run yet.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for status, moment in _moments(until).items():
        while batch := _hold_batch(status, moment, reason):  # which then match no more
            counts.update((row.organization_id, status) for row in batch)
    return counts


def _moments(until: datetime) -> dict[Status, datetime]:
    """Return by status until when a delivery has to be due to be doubtful. Leases end later."""
    statuses = (Status.ACCEPTED, Status.SCHEDULED, Status.UNKNOWN, Status.SENT)
    leases_end = until + timedelta(seconds=settings.LEASE_SECONDS) + _LEASE_MARGIN
    return {**dict.fromkeys(statuses, until), Status.SENDING: leases_end}


def _hold_batch(status: Status, moment: datetime, reason: str) -> list[Delivery]:
    with transaction.atomic():
        rows = Delivery.objects.filter(status=status, due_at__lte=moment)
        batch = list(rows.select_for_update()[:_BATCH])
        now = clock.now()
        steps = _TO_UNKNOWN.get(status, ())
        for target in steps:
            apply_transitions(
                [
                    Transition(
                        id=row.pk,
                        status=target,
                        due_at=None,
                        reason=StatusReason.UNKNOWN_OUTCOME,
                        detail=None,
                    )
                    for row in batch
                ]
            )
        if not steps:
            due_work.set_due([NewDueTime(row.pk, None) for row in batch])
        if status != Status.SENT:
            detail = {"decision": "HOLD", "reason": reason}
            write_events([_held(row, now, detail) for row in batch])
    return batch


def _held(row: Delivery, now: datetime, detail: Mapping[str, object]) -> EventRow:
    return EventRow(
        row.organization_id,
        row.message_id,
        row.pk,
        EventType.DEFERRED,
        now,
        channel=row.channel,
        provider=row.provider,
        detail=detail,
        test=row.test,
    )


def _transition(delivery: Delivery, decision: Decision, now: datetime) -> Transition:
    if decision is Decision.GIVE_UP:
        return Transition(
            id=delivery.pk,
            status=Status.FAILED,
            due_at=None,
            reason=StatusReason.PROVIDER_ERROR,
            detail="no answer came, and it was given up",
        )
    # The decision is to deliver it, so the category's time to live begins anew.
    time_to_live = (
        organization_policy.of(delivery.organization_id).rules(delivery.category).expires_after
    )
    return Transition(
        id=delivery.pk,
        status=Status.ACCEPTED,
        due_at=now,
        reason=None,
        detail=None,
        tries=delivery.tries + 1,  # it may have left: if it is too late then, it fails
        expires_at=max(delivery.expires_at, now + time_to_live),
    )


def _event(delivery: Delivery, decision: Decision, reason: str, now: datetime) -> EventRow:
    return EventRow(
        delivery.organization_id,
        delivery.message_id,
        delivery.pk,
        _EVENTS[decision],
        now,
        channel=delivery.channel,
        provider=delivery.provider,
        detail={"decision": decision, "reason": reason},
        test=delivery.test,
    )
