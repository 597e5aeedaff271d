"""Deliveries held with an unknown outcome, and what a person decides of them.

Held is what is UNKNOWN and nobody looks at any more by itself (`due_at` is null): the category's
`on_unknown` says HOLD, or all resends were used up. A late receipt ends that, or a person does.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from django.contrib.admin.models import CHANGE, LogEntry
from django.db import connection, transaction
from django.db.models import Q

from messaging.models import Delivery
from messaging.models.statuses import EventType, Status
from messaging.models.transitions import Transition, apply_transitions
from messaging.policy import organization_policy
from messaging.webhooks.events import EventRow, write_events
from rme.core.db import clock

HELD = Q(status=Status.UNKNOWN, due_at__isnull=True)
COUNTED = 1000
"""So many of an organization are counted at most."""

_COUNTS = f"""
SELECT o, (SELECT count(*) FROM (
  SELECT FROM {Delivery._meta.db_table} WHERE organization_id = o AND status = 'UNKNOWN'
    AND due_at IS NULL LIMIT {COUNTED}) held)
FROM unnest(%s::text[]) o
"""


class Decision(StrEnum):
    """What becomes of a delivery of which nobody can say whether it arrived."""

    SEND_AGAIN = "SEND_AGAIN"
    GIVE_UP = "GIVE_UP"


_EVENTS = {
    Decision.SEND_AGAIN: EventType.ACCEPTED,
    Decision.GIVE_UP: EventType.FAILED,
}


def counts(organization_ids: Sequence[str]) -> dict[str, int]:
    """Count what each organization has on hold, up to COUNTED; one query for all."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, [list(organization_ids)])
        return dict(cursor.fetchall())


def decide(
    organization_id: str,
    delivery_ids: Collection[UUID],
    decision: Decision,
    *,
    reason: str,
    user_id: int,
) -> set[UUID]:
    """Decide what is held of an organization; give the ids of those for which it now holds.

    All others are left alone: a receipt was first, or somebody else. Each has an event, and a line
    with the reason in the admin's log. The number of statements does not depend on how many there
    are.
    """
    with transaction.atomic():
        # What waited for a receipt's lock is looked at again behind it. In the order of receipts,
        # so that the two never wait for each other.
        rows = Delivery.objects.filter(HELD, organization_id=organization_id, pk__in=delivery_ids)
        found = list(rows.order_by("pk").select_for_update())
        now = clock.now()
        moved = apply_transitions([_transition(row, decision, now) for row in found])
        decided = [row for row in found if row.pk in moved]
        write_events([_event(row, decision, reason, now) for row in decided])
        if decided:
            told = [{"values": {"decision": ["held", decision]}}, {"reason": reason}]
            LogEntry.objects.log_actions(user_id, decided, CHANGE, told)
    return moved


def _transition(delivery: Delivery, decision: Decision, now: datetime) -> Transition:
    if decision is Decision.GIVE_UP:
        return Transition(
            id=delivery.pk,
            status=Status.FAILED,
            due_at=None,
            reason="PROVIDER_ERROR",
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
    )
