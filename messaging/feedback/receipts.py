"""Receipts: applied in batches, in any order and any number of times, with the same final state.

The status follows from all events on the delivery's channel, not from the receipt that came last.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connection, transaction

from messaging.consent import gate_lock, opt_outs, soft_bounces, suppressions
from messaging.models import Attempt, Delivery, Event
from messaging.models.statuses import EventType, Status, StatusReason
from messaging.models.transitions import Transition, apply_transitions
from messaging.telemetry import spans
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
"""The events that a receipt implies: an email that was opened was also delivered."""

STATUS_OF: dict[str, Status] = {
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
BY_PERSON_OR_MACHINE = frozenset({E.OPEN, E.CLICK})
"""Events that are recorded once for a person and once for a machine."""

# A delivery that is SENT or DELIVERED, and has had one channel, was sent on it: its attempts, which
# stand for that event, need not be looked up.
# `trace` stands for the context of the message's trace.
_READ = f"""
SELECT d.id, d.organization_id, d.message_id, d.channel, d.address, d.provider,
  d.status = 'SENT' AND d.due_at IS NOT NULL AND d.channels IS NOT NULL AND d.channels <> '{{}}',
  array(SELECT coalesce(e.channel, d.channel) || ' ' || e.type
        || CASE WHEN e.detail->'machine' = 'true' THEN '{BY_MACHINE}' ELSE '' END
        FROM {Event._meta.db_table} e
        WHERE e.message_id = d.message_id AND e.delivery_id = d.id)
  || CASE WHEN d.status IN ('SENT', 'DELIVERED') AND d.accepted_channel IS NULL
     THEN ARRAY[d.channel || ' {E.SENT}']
     ELSE array(SELECT a.channel || ' {E.SENT}' FROM {Attempt._meta.db_table} a
                WHERE a.delivery_id = d.id AND a.sent_at IS NOT NULL) END,
  :trace
FROM {Delivery._meta.db_table} d WHERE d.id = ANY(%s) ORDER BY d.id FOR UPDATE
"""
_ORGANIZATIONS = (
    f"SELECT DISTINCT organization_id FROM {Delivery._meta.db_table} WHERE id = ANY(%s)"
)
# A failure counts for the last attempt only, if the provider may have accepted that one.
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
    """A receipt for a delivery that the provider accepted; `type` is an event's type."""

    delivery_id: UUID
    type: str
    reason: str | None = None
    channel: str | None = None
    """The channel of the attempt; None: the delivery's current one."""
    provider: str | None = None
    """The account of the attempt; None: the delivery's."""
    soft: bool = False
    """Of a failure: the address was unreachable for now."""
    machine: bool = False
    """Of an open or a click: a scanner or a proxy made it."""


class AccountReceipt(NamedTuple):
    """A provider's receipt, and the account that reported it."""

    account_id: int
    receipt: DeliveryReceipt


class _KnownAttempt(NamedTuple):
    """The attempt of a receipt, and the state of its delivery."""

    id: UUID
    account_id: int | None
    delivery_id: UUID
    channel: str
    provider: str | None
    in_progress: bool
    """A worker has the delivery, and has not recorded the outcome yet."""
    is_last: bool
    """It is the delivery's last attempt, and may have been accepted."""


def needs_gate_lock(receipt: DeliveryReceipt) -> bool:
    """Return whether a receipt may forbid later sends: applying it needs the gate lock."""
    return receipt.type == E.UNSUBSCRIBED or _may_suppress(receipt)


def _may_suppress(receipt: DeliveryReceipt | Receipt) -> bool:
    return receipt.soft or receipt.type in SUPPRESSES


class AppliedReceipts(NamedTuple):
    """The keys of receipts that could not be applied."""

    early: set[UUID]
    unknown: set[UUID]
    """All their receipts are for attempts that are not the account's."""


def apply_provider_receipts(
    receipts_by_key: Mapping[UUID, Sequence[AccountReceipt]],
) -> AppliedReceipts:
    """Apply what accounts report, by any key; return the keys of which nothing was applied.

    Too early means that a worker has the delivery and has not recorded the outcome yet. Two kinds
    are dropped: a receipt for another account's attempt, and a failure of an attempt that was
    followed by another. Call this in a transaction that has the gate locks of all organizations
    for whose receipts `needs_gate_lock` is true.
    """
    entries = [
        (key, account_id, receipt)
        for key, found in receipts_by_key.items()
        for account_id, receipt in found
    ]
    attempts = _read_attempts({receipt.attempt_id for _, _, receipt in entries} - {None})
    early: set[UUID] = set()
    known: set[UUID] = set()
    receipts: list[Receipt] = []
    unsubscribed: set[UUID] = set()
    for key, account_id, receipt in entries:
        attempt = attempts.get(receipt.attempt_id)
        if attempt is None or attempt.account_id != account_id:
            continue
        known.add(key)
        if attempt.in_progress:
            early.add(key)
        elif attempt.is_last or receipt.type not in FAILURES:
            if receipt.type == E.UNSUBSCRIBED:
                unsubscribed.add(attempt.delivery_id)
            receipts.append(_receipt(attempt, receipt))
    if receipts:
        _apply(receipts)
    opt_outs.record(unsubscribed)
    return AppliedReceipts(early, {key for key, *_ in entries} - known)


def _read_attempts(attempt_ids: Collection[UUID | None]) -> Mapping[UUID | None, _KnownAttempt]:
    """Read attempts, and lock their deliveries: one statement, and none if there are none."""
    if not attempt_ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(sql.BY_INDEX)
        cursor.execute(_ATTEMPTS, [list(attempt_ids)])
        return {row[0]: _KnownAttempt(*row) for row in cursor.fetchall()}


def _receipt(attempt: _KnownAttempt, reported: DeliveryReceipt) -> Receipt:
    return Receipt(
        attempt.delivery_id,
        reported.type,
        reported.reason,
        attempt.channel,
        attempt.provider,
        soft=reported.soft,
        machine=reported.machine,
    )


def apply(receipts: Sequence[Receipt]) -> None:
    """Apply receipts in one transaction; those of deliveries that do not exist are dropped.

    The number of statements does not depend on the number of receipts.
    """
    if not receipts:
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(sql.BY_INDEX)
        _take_gate_locks([receipt.delivery_id for receipt in receipts if _may_suppress(receipt)])
        _apply(receipts)


def _take_gate_locks(delivery_ids: Collection[UUID]) -> None:
    if not delivery_ids:
        return
    with connection.cursor() as cursor:
        cursor.execute(_ORGANIZATIONS, [list(delivery_ids)])
        organization_ids = [row[0] for row in cursor.fetchall()]
    gate_lock.take_exclusive(organization_ids)


def _apply(receipts: Sequence[Receipt]) -> None:
    by_delivery: dict[UUID, list[Receipt]] = {}
    for receipt in receipts:
        by_delivery.setdefault(receipt.delivery_id, []).append(receipt)
    with connection.cursor() as cursor:
        cursor.execute(
            _READ.replace(":trace", spans.context_of("d.message_id")), [list(by_delivery)]
        )
        known = [_Known(*row) for row in cursor.fetchall()]
    events: list[EventRow] = []
    now = clock.now()
    for each in known:
        found = by_delivery[each.id]
        spans.received(each.id, each.traceparent, (receipt.type for receipt in found))
        for receipt in found:
            events += [_event(each, receipt, kind, now) for kind in each.add(receipt)]
    moves = [(each, each.final(by_delivery[each.id])) for each in known]
    # A failure while another channel is left: the fallback is due now.
    moving_on = [e.id for e, status in moves if status is Status.FAILED and e.may_fall_back]
    sql.update(Delivery, [{"id": each, "due_at": now} for each in moving_on])
    apply_transitions(
        [
            Transition(
                id=each.id,
                status=status,
                due_at=None,
                reason=StatusReason.PROVIDER_ERROR if status is Status.FAILED else None,
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
    """A delivery, and its events so far, each as `CHANNEL type`."""

    id: UUID
    organization_id: str
    message_id: UUID
    channel: str
    address: str | None
    provider: str | None
    may_fall_back: bool
    seen: list[str]
    traceparent: str | None

    def add(self, receipt: Receipt) -> list[EventType]:
        """Return the types of the events that a receipt adds, and remember them."""
        channel = receipt.channel or self.channel
        kinds = IMPLIES.get(receipt.type, ())
        new = [kind for kind in kinds if f"{channel} {kind}" not in self.seen]
        if receipt.machine:
            new = [kind for kind in new if f"{channel} {kind}{BY_MACHINE}" not in self.seen]
        self.seen += [f"{channel} {kind}{_maker(receipt, kind)}" for kind in new]
        return new

    def final(self, receipts: Sequence[Receipt]) -> Status | None:
        """Return the status that follows from all events; None if no receipt changes a status.

        A confirmation outweighs a failure, whichever came first. For an email, a bounce outweighs
        the confirmation. After a fallback, only a confirmation counts from the channel before.
        """
        moving = [r for r in receipts if r.type in STATUS_OF and not self._is_past(r)]
        if not moving:
            return None
        if self.channel == Channel.EMAIL and self._has(E.BOUNCED):
            return Status.FAILED
        if any(STATUS_OF[EventType(r.type)] is Status.DELIVERED for r in moving):
            return Status.DELIVERED
        if self._has(E.DELIVERED):
            return Status.DELIVERED
        return Status.FAILED if self._has(E.FAILED) or self._has(E.BOUNCED) else Status.SENT

    def suppressed(self, receipts: Sequence[Receipt]) -> list[suppressions.NewSuppression]:
        """Return the suppressions that receipts of the delivery's current channel cause."""
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
        """Return whether a receipt is from a channel before the fallback, and confirms nothing."""
        confirms = STATUS_OF[EventType(receipt.type)] is Status.DELIVERED
        return receipt.channel not in (None, self.channel) and not confirms


def _maker(receipt: Receipt, kind: str) -> str:
    return BY_MACHINE if receipt.machine and kind in BY_PERSON_OR_MACHINE else ""


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
    detail = {"reason": receipt.reason, "soft": receipt.soft, "machine": machine}
    return {name: value for name, value in detail.items() if value} or None
