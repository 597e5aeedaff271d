"""Release scheduled deliveries that are due, recover ended leases, decide unknown outcomes, and
fall back to the next channel.

Any number of processes may run this at once: rows are locked with SKIP LOCKED and changed by
compare-and-set.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from messaging.domain.deliveries import DueDelivery
from messaging.domain.progress.next_steps import UnknownAttempts, resend_at
from messaging.domain.progress.transitions import Transition
from messaging.domain.statuses import EventType, Status, StatusReason
from messaging.domain.timing import is_released_late
from messaging.models import SendingRules
from messaging.policy import organization_policy
from messaging.store import due_work
from messaging.store.due_work import NewDueTime
from messaging.store.events import EventRow, write_events
from messaging.store.transitions import apply_transitions

BATCH = 1000


# --- scheduled deliveries -------------------------------------------------------------------------


def release(batch: int = BATCH) -> int:
    """Move scheduled deliveries that are due to ACCEPTED; return how many were looked at.

    TRANSACTIONAL first, and fair between organizations: each that is chosen has the same share of
    the batch. One that is found later than the organization's grace expires, unless it is
    TRANSACTIONAL.
    """
    with transaction.atomic():
        due = due_work.lock_scheduled(batch)
        grace = _graces({each.organization_id for each in due if each.priority > 0})
        late_ids = {
            each.id
            for each in due
            if each.priority > 0
            and is_released_late(each.scheduled_for, each.now, grace[each.organization_id])
        }
        apply_transitions(
            [_expired(each) if each.id in late_ids else _accepted(each) for each in due]
        )
        write_events([_event(each, EventType.EXPIRED) for each in due if each.id in late_ids])
    return len(due)


def _expired(delivery: DueDelivery) -> Transition:
    reason = StatusReason.EXPIRED
    return Transition(id=delivery.id, status=Status.EXPIRED, due_at=None, reason=reason)


def _accepted(delivery: DueDelivery) -> Transition:
    due_at = delivery.due_at
    return Transition(id=delivery.id, status=Status.ACCEPTED, due_at=due_at, reason=None)


def _graces(organization_ids: Collection[str]) -> dict[str, timedelta]:
    """Return how late each organization lets a scheduled delivery be; one query for all."""
    graces = dict(
        SendingRules.objects.filter(organization_id__in=organization_ids).values_list(
            "organization_id", "schedule_grace"
        )
    )
    usual = SendingRules().schedule_grace
    return {each: timedelta(seconds=graces.get(each, usual)) for each in organization_ids}


# --- leases ---------------------------------------------------------------------------------------


def reclaim() -> int:
    """Take deliveries back whose lease has ended, since their worker is thought dead; return how
    many.

    Where an attempt was written and has no outcome, it may have left: UNKNOWN, to be decided.
    Otherwise nothing left, and the delivery is ready again at once.
    """
    with transaction.atomic():
        due = due_work.lock_due(Status.SENDING, BATCH)
        if not due:
            return 0
        in_doubt = due_work.open_attempts(due)
        wait = timedelta(seconds=settings.UNKNOWN_SECONDS)
        apply_transitions(
            [
                Transition(
                    id=each.id,
                    fence=each.fence,
                    status=Status.UNKNOWN if each.id in in_doubt else Status.ACCEPTED,
                    due_at=each.now + wait if each.id in in_doubt else each.now,
                    reason=StatusReason.UNKNOWN_OUTCOME if each.id in in_doubt else None,
                )
                for each in due
            ]
        )
    return len(due)


# --- unknown outcomes -----------------------------------------------------------------------------


def resolve_unknown() -> int:
    """Decide unknown outcomes for which no receipt came: send again, or leave to manual review.

    The category says which. But after as many resends as `UNKNOWN_BACKOFF_SECONDS` has values a
    delivery goes to manual review: a provider that accepts messages and never answers would get
    copies for ever. In manual review it is still UNKNOWN, and a receipt still ends it.

    A delivery that is sent again has been tried: if it is too late it becomes FAILED, which a
    receipt may still turn to DELIVERED, and not EXPIRED.
    """
    with transaction.atomic():
        due = due_work.lock_due(Status.UNKNOWN, BATCH)
        attempts = due_work.unknown_attempts(due)
        new_times: list[NewDueTime] = []
        again: list[Transition] = []
        events: list[EventRow] = []
        for delivery in due:
            sent = attempts.get(delivery.id, UnknownAttempts(1, delivery.now))
            waits_until = _waits_until(delivery, sent)
            if waits_until is None or waits_until > delivery.now:
                new_times.append(NewDueTime(delivery.id, waits_until))
            elif delivery.expires_at <= delivery.now:
                again.append(
                    Transition(
                        id=delivery.id,
                        status=Status.FAILED,
                        due_at=None,
                        reason=StatusReason.PROVIDER_ERROR,
                        tries=delivery.tries,
                    )
                )
                events.append(_event(delivery, EventType.FAILED))
            else:
                again.append(
                    Transition(
                        id=delivery.id,
                        status=Status.ACCEPTED,
                        due_at=delivery.now,
                        reason=None,
                        tries=delivery.tries + 1,
                    )
                )
                limit = len(settings.UNKNOWN_BACKOFF_SECONDS)
                reason = f"resent: outcome unknown ({sent.times} of {limit})"
                detail = {"decision": "RESEND", "reason": reason}
                events.append(_event(delivery, EventType.DEFERRED, detail))
        apply_transitions(again)
        write_events(events)
        due_work.set_due(new_times)
    return len(due)


def _waits_until(delivery: DueDelivery, sent: UnknownAttempts) -> datetime | None:
    """Return when a delivery is sent again; None: it waits for manual review."""
    return resend_at(
        delivery,
        sent,
        organization_policy.of(delivery.organization_id).rules(delivery.category),
        receipt_seconds=settings.UNKNOWN_SECONDS,
        backoff_seconds=settings.UNKNOWN_BACKOFF_SECONDS,
    )


# --- fallback -------------------------------------------------------------------------------------


def fall_back() -> int:
    """Move deliveries that were not confirmed in time on to the next channel; return how many."""
    with transaction.atomic():
        due = due_work.lock_due(Status.SENT, BATCH)
        changed = apply_transitions(
            [
                Transition(
                    id=each.id,
                    status=Status.ACCEPTED,
                    channel=each.channels[0],
                    channels=each.channels[1:] or None,
                    address=None,
                    due_at=each.now,
                )
                for each in due
            ]
        )
        write_events([_event(each, EventType.FALLBACK) for each in due if each.id in changed])
    return len(due)


def _event(
    delivery: DueDelivery, kind: EventType, detail: Mapping[str, object] | None = None
) -> EventRow:
    """Return an event of a delivery, of now."""
    return EventRow(
        delivery.organization_id,
        delivery.message_id,
        delivery.id,
        kind,
        delivery.now,
        channel=delivery.channel,
        detail=detail,
        test=delivery.test,
    )
