"""What providers report after they took a message: applied in sets, in any order, any number of
times, with the same final state.
"""

from collections.abc import Sequence
from uuid import UUID

from django.db import connection, transaction

from messaging import suppression
from messaging.models import Delivery, Event
from messaging.outcome import Receipt
from messaging.states import TRANSITIONS, EventType, Status
from rme.core import clock, ids, sql
from rme.core.states import advance

E = EventType

IMPLIES: dict[str, tuple[str, ...]] = {
    E.SENT: (E.SENT,),
    E.DELIVERED: (E.SENT, E.DELIVERED),
    E.OPEN: (E.SENT, E.DELIVERED, E.OPEN),
    E.CLICK: (E.SENT, E.DELIVERED, E.CLICK),
    E.BOUNCED: (E.SENT, E.BOUNCED),
    E.FAILED: (E.FAILED,),
    E.COMPLAINED: (E.SENT, E.DELIVERED, E.COMPLAINED),
    E.UNSUBSCRIBED: (E.UNSUBSCRIBED,),
}
"""What must have happened for a receipt to be true: an open implies a delivery."""

TARGET: dict[str, Status] = {
    E.SENT: Status.SENT,
    E.DELIVERED: Status.DELIVERED,
    E.OPEN: Status.DELIVERED,
    E.CLICK: Status.DELIVERED,
    E.COMPLAINED: Status.DELIVERED,
    E.BOUNCED: Status.FAILED,
    E.FAILED: Status.FAILED,
}

SUPPRESSES = {E.BOUNCED: "HARD_BOUNCE", E.COMPLAINED: "COMPLAINT"}

_READ = f"""
SELECT d.id, d.organization_id, d.message_id, d.channel, d.address, d.provider,
  array(SELECT e.type FROM {Event._meta.db_table} e
        WHERE e.message_id = d.message_id AND e.delivery_id = d.id)
FROM {Delivery._meta.db_table} d WHERE d.id = ANY(%s) ORDER BY d.id FOR UPDATE
"""


def apply(receipts: Sequence[Receipt]) -> None:
    """Apply receipts in one transaction; those of deliveries that do not exist are dropped.

    The number of statements does not depend on how many there are.
    """
    if not receipts:
        return
    by_delivery: dict[UUID, list[Receipt]] = {}
    for receipt in receipts:
        by_delivery.setdefault(receipt.delivery_id, []).append(receipt)
    now = clock.now()
    statuses: list[sql.Row] = []
    events: list[sql.Row] = []
    suppressed: list[suppression.Entry] = []
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_READ, [list(by_delivery)])
            rows = cursor.fetchall()
        for delivery_id, organization_id, message_id, channel, address, provider, known in rows:
            seen = set(known)
            for receipt in by_delivery[delivery_id]:
                for kind in IMPLIES.get(receipt.type, ()):
                    if kind not in seen:
                        seen.add(kind)
                        events.append(
                            {
                                "id": ids.new_id(),
                                "organization_id": organization_id,
                                "message_id": message_id,
                                "delivery_id": delivery_id,
                                "type": kind,
                                "at": now,
                                "channel": channel,
                                "provider": provider,
                                "detail": {"reason": receipt.reason} if receipt.reason else None,
                            }
                        )
                if address and receipt.type in SUPPRESSES:
                    reason = SUPPRESSES[EventType(receipt.type)]
                    entry = suppression.Entry(organization_id, channel, address, reason, "PROVIDER")
                    suppressed.append(entry)
            status = _final(seen, by_delivery[delivery_id])
            if status:
                failed = status is Status.FAILED
                statuses.append(
                    {
                        "id": delivery_id,
                        "status": status,
                        "due_at": None,
                        "reason": "PROVIDER_ERROR" if failed else None,
                    }
                )
        advance(Delivery, TRANSITIONS, statuses)
        sql.insert({Event: events})
        suppression.suppress(suppressed)


def _final(seen: set[str], receipts: Sequence[Receipt]) -> Status | None:
    """Give the status that all that is known amounts to: a bounce after a delivery wins."""
    targets = {TARGET[EventType(r.type)] for r in receipts if r.type in TARGET}
    if Status.FAILED in targets and E.BOUNCED in seen:
        return Status.FAILED
    for status in (Status.DELIVERED, Status.FAILED, Status.SENT):
        if status in targets:
            return status
    return None
