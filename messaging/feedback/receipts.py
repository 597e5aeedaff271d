"""What providers report after they took a message: applied in sets, in any order, any number of
times, with the same final state.

The state follows from all that is known to have happened on the delivery's channel, not from what
came last.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection, transaction

from messaging.consent import gate_lock, opt_outs, soft_bounces, suppressions
from messaging.models import Attempt, Delivery, Event
from messaging.models.statuses import EventType, Status
from messaging.models.transitions import Transition, apply_transitions
from messaging.webhooks.events import EventRow, write_events
from rme.core.channels import Channel
from rme.core.db import clock, sql
from rme.core.provider import DeliveryReceipt

E = EventType

IMPLIES: dict[str, tuple[EventType, ...]] = {
    E.SENT: (E.SENT,),
    E.DELIVERED: (E.SENT, E.DELIVERED),
    E.OPEN: (E.SENT, E.DELIVERED, E.OPEN),
    E.CLICK: (E.SENT, E.DELIVERED, E.CLICK),
    E.DEFERRED: (E.SENT, E.DEFERRED),
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

FAILURES = frozenset({E.FAILED, E.BOUNCED})
SUPPRESSES = {E.BOUNCED: "HARD_BOUNCE", E.COMPLAINED: "COMPLAINT"}

BY_MACHINE = " by machine"
ONCE_EACH = frozenset({E.OPEN, E.CLICK})
"""What a machine's first does not make a person's first any less news."""

_READ = f"""
SELECT d.id, d.organization_id, d.message_id, d.channel, d.address, d.provider,
  d.status = 'SENT' AND d.due_at IS NOT NULL AND d.channels <> '{{}}',
  array(SELECT coalesce(e.channel, d.channel) || ' ' || e.type
        || CASE WHEN e.detail->'machine' = 'true' THEN '{BY_MACHINE}' ELSE '' END
        FROM {Event._meta.db_table} e
        WHERE e.message_id = d.message_id AND e.delivery_id = d.id)
FROM {Delivery._meta.db_table} d WHERE d.id = ANY(%s) ORDER BY d.id FOR UPDATE
"""
_WHOSE = f"SELECT DISTINCT organization_id FROM {Delivery._meta.db_table} WHERE id = ANY(%s)"
# The attempt that a failure is believed of: the last one, if it may have been taken.
_ATTEMPTS = f"""
WITH named AS MATERIALIZED (
  SELECT id, account_id, delivery_id, channel, provider, fence, outcome
  FROM {Attempt._meta.db_table} WHERE id = ANY(%s) ORDER BY id
)
SELECT a.id, a.account_id, a.delivery_id, a.channel, a.provider,
  d.status IN ('SENDING', 'ACCEPTED'),
  a.fence = d.fence AND coalesce(a.outcome, 'Unknown') IN ('Accepted', 'Unknown')
FROM named a JOIN {Delivery._meta.db_table} d ON {sql.by_key("d.id", "a.delivery_id")}
ORDER BY a.delivery_id FOR UPDATE OF d
"""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a provider reports of a delivery after it took it; `type` is an event's type."""

    delivery_id: UUID
    type: str
    reason: str | None = None
    channel: str | None = None
    """The channel it was sent on; None: the one that the delivery is on."""
    provider: str | None = None
    """The account that it was sent by; None: the delivery's."""
    soft: bool = False
    """Of a failure: the address could not be reached for now."""
    machine: bool = False
    """Of an open or a click: a scanner or a proxy made it."""


def needs_gate_lock(report: DeliveryReceipt) -> bool:
    """Say whether a report may forbid what is sent from then on: it needs the gate lock."""
    return report.type == E.UNSUBSCRIBED or _may_suppress(report)


def _may_suppress(said: DeliveryReceipt | Receipt) -> bool:
    return said.soft or said.type in SUPPRESSES


def apply_provider_receipts(
    reports: Mapping[UUID, Sequence[tuple[int, DeliveryReceipt]]],
) -> set[UUID]:
    """Apply what accounts report, by whatever key; give the keys of what came too early.

    That is what a worker, which has the delivery in hand, has yet to write down. What an account
    reports on an attempt that is not its own is dropped, and so is the failure of an attempt that
    another has taken the place of. Belongs into a transaction, which holds the gate lock of
    organizations for which anything `needs_gate_lock`.
    """
    named = (report.attempt_id for entries in reports.values() for _, report in entries)
    wanted = {attempt_id for attempt_id in named if attempt_id}
    if not wanted:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(_ATTEMPTS, [list(wanted)])
        attempts = {row[0]: row[1:] for row in cursor.fetchall()}
    early: set[UUID] = set()
    receipts: list[Receipt] = []
    left: set[UUID] = set()
    for key, entries in reports.items():
        for account_id, report in entries:
            own, *found = (report.attempt_id and attempts.get(report.attempt_id)) or (None,)
            if own != account_id:
                continue
            delivery_id, channel, provider, in_hand, last = found
            if in_hand:
                early.add(key)
            elif last or report.type not in FAILURES:
                if report.type == E.UNSUBSCRIBED:
                    left.add(delivery_id)
                receipts.append(
                    Receipt(
                        delivery_id,
                        report.type,
                        report.reason,
                        channel,
                        provider,
                        soft=report.soft,
                        machine=report.machine,
                    )
                )
    if receipts:
        _apply(receipts)
    opt_outs.record(left)
    return early


def apply(receipts: Sequence[Receipt]) -> None:
    """Apply receipts in one transaction; those of deliveries that do not exist are dropped.

    The number of statements does not depend on how many there are.
    """
    if not receipts:
        return
    with transaction.atomic():
        _hold([receipt.delivery_id for receipt in receipts if _may_suppress(receipt)])
        _apply(receipts)


def _hold(delivery_ids: Collection[UUID]) -> None:
    """Hold the gate lock of the organizations of deliveries."""
    if not delivery_ids:
        return
    with connection.cursor() as cursor:
        cursor.execute(_WHOSE, [list(delivery_ids)])
        organization_ids = [row[0] for row in cursor.fetchall()]
    gate_lock.take_exclusive(organization_ids)


def _apply(receipts: Sequence[Receipt]) -> None:
    by_delivery: dict[UUID, list[Receipt]] = {}
    for receipt in receipts:
        by_delivery.setdefault(receipt.delivery_id, []).append(receipt)
    with connection.cursor() as cursor:
        cursor.execute(_READ, [list(by_delivery)])
        known = [_Known(*row) for row in cursor.fetchall()]
    events: list[EventRow] = []
    now = clock.now()
    for each in known:
        for receipt in by_delivery[each.id]:
            events += [_event(each, receipt, kind, now) for kind in each.learn(receipt)]
    moves = [(each, each.final(by_delivery[each.id])) for each in known]
    # A failure before the confirmation, where there is another channel: its turn is now.
    moving_on = [e.id for e, status in moves if status is Status.FAILED and e.may_fall_back]
    sql.update(Delivery, [{"id": each, "due_at": now} for each in moving_on])
    apply_transitions(
        [
            Transition(
                id=each.id,
                status=status,
                due_at=None,
                reason="PROVIDER_ERROR" if status is Status.FAILED else None,
            )
            for each, status in moves
            if status and each.id not in moving_on
        ]
    )
    write_events(events)
    suppressions.suppress(
        [
            *(entry for each in known for entry in each.suppressed(by_delivery[each.id])),
            *soft_bounces.find_dead_addresses([r.delivery_id for r in receipts if r.soft], now),
        ]
    )


@dataclass(slots=True)
class _Known:
    """A delivery, and what is known to have happened to it (`CHANNEL type`)."""

    id: UUID
    organization_id: str
    message_id: UUID
    channel: str
    address: str | None
    provider: str | None
    may_fall_back: bool
    seen: list[str]

    def learn(self, receipt: Receipt) -> list[EventType]:
        """Give the events that a receipt adds to what was known."""
        channel = receipt.channel or self.channel
        kinds = IMPLIES.get(receipt.type, ())
        new = [kind for kind in kinds if f"{channel} {kind}" not in self.seen]
        if receipt.machine:
            new = [kind for kind in new if f"{channel} {kind}{BY_MACHINE}" not in self.seen]
        self.seen += [f"{channel} {kind}{_maker(receipt, kind)}" for kind in new]
        return new

    def final(self, receipts: Sequence[Receipt]) -> Status | None:
        """Give the status that all amounts to, if the receipts are of a kind that moves one.

        A confirmation wins over a failure, whichever came first, and only of an email a bounce
        wins over the confirmation. Of a channel that was given up, only that counts.
        """
        moving = [r for r in receipts if r.type in TARGET and not self._is_past(r)]
        if not moving:
            return None
        if self.channel == Channel.EMAIL and self._has(E.BOUNCED):
            return Status.FAILED
        if any(TARGET[EventType(r.type)] is Status.DELIVERED for r in moving):
            return Status.DELIVERED
        if self._has(E.DELIVERED):
            return Status.DELIVERED
        return Status.FAILED if self._has(E.FAILED) or self._has(E.BOUNCED) else Status.SENT

    def suppressed(self, receipts: Sequence[Receipt]) -> list[suppressions.NewSuppression]:
        """Give what is to be suppressed: the address is that of the channel the delivery is on."""
        if not self.address:
            return []
        return [
            suppressions.NewSuppression(
                self.organization_id,
                self.channel,
                self.address,
                SUPPRESSES[EventType(receipt.type)],
                "PROVIDER",
            )
            for receipt in receipts
            if receipt.type in SUPPRESSES and receipt.channel in (None, self.channel)
        ]

    def _has(self, kind: str) -> bool:
        return f"{self.channel} {kind}" in self.seen

    def _is_past(self, receipt: Receipt) -> bool:
        """Say whether a receipt is of another channel, and confirms nothing."""
        confirms = TARGET[EventType(receipt.type)] is Status.DELIVERED
        return receipt.channel not in (None, self.channel) and not confirms


def _maker(receipt: Receipt, kind: str) -> str:
    return BY_MACHINE if receipt.machine and kind in ONCE_EACH else ""


def _event(each: _Known, receipt: Receipt, kind: EventType, now: datetime) -> EventRow:
    return EventRow(
        each.organization_id,
        each.message_id,
        each.id,
        kind,
        now,
        channel=receipt.channel or each.channel,
        provider=receipt.provider or each.provider,
        detail=_detail(receipt, kind),
    )


def _detail(receipt: Receipt, kind: str) -> dict[str, object] | None:
    machine = bool(_maker(receipt, kind))
    said = {"reason": receipt.reason, "soft": receipt.soft, "machine": machine}
    return {name: value for name, value in said.items() if value} or None
