"""Receipts: applied in batches, in any order and any number of times, with the same final state.

The status follows from all events on the delivery's channel, not from the receipt that came last.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db import transaction

from messaging.consent import gate_lock, opt_outs, soft_bounces, suppressions
from messaging.feedback import reported_attempts
from messaging.feedback.reported_attempts import ReportedAttempt
from messaging.models import Attempt, Delivery, Event, Message
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

BY_PERSON_OR_MACHINE = frozenset({E.OPEN, E.CLICK})
"""Events that are recorded once for a person and once for a machine."""
CONFIRMS = frozenset(kind for kind, status in STATUS_OF.items() if status is Status.DELIVERED)

# A delivery that is SENT or DELIVERED, and has had one channel, was sent on it: its attempts, which
# stand for that event, need not be looked up.
# `trace` stands for the context of the message's trace.
_ON_ONE_CHANNEL = "d.status IN ('SENT', 'DELIVERED') AND d.accepted_channel IS NULL"
_READ = f"""
SELECT d.id, d.organization_id, d.message_id, d.channel, d.address, d.provider, d.status,
  CASE WHEN d.channels IS NULL OR d.channels = '{{}}' THEN NULL
    WHEN d.status = 'SENT' AND d.due_at IS NOT NULL THEN 0
    WHEN d.status = 'UNKNOWN' THEN (
      SELECT coalesce(m.fallback_after, 300) FROM {Message._meta.db_table} m
      WHERE m.id = d.message_id AND m.strategy = 'FIRST_DELIVERED') END,
  (SELECT json_agg(json_build_array(channel, type, machine)) FROM (
    SELECT coalesce(e.channel, d.channel) AS channel, e.type,
      coalesce(e.detail->'machine' = 'true', false) AS machine
    FROM {Event._meta.db_table} e WHERE e.message_id = d.message_id AND e.delivery_id = d.id
    UNION ALL SELECT d.channel, '{E.SENT}', false WHERE {_ON_ONE_CHANNEL}
    UNION ALL SELECT a.channel, '{E.SENT}', false FROM {Attempt._meta.db_table} a
    WHERE a.delivery_id = d.id AND a.sent_at IS NOT NULL AND ({_ON_ONE_CHANNEL}) IS NOT TRUE) seen),
  :trace
FROM {Delivery._meta.db_table} d WHERE d.id = ANY(%s::uuid[]) ORDER BY d.id FOR UPDATE
"""
_ORGANIZATIONS = (
    f"SELECT DISTINCT organization_id FROM {Delivery._meta.db_table} WHERE id = ANY(%s::uuid[])"
)


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
    account_id: int | None = None
    soft: bool = False
    """Of a failure: the address was unreachable for now."""
    machine: bool = False
    """Of an open or a click: a scanner or a proxy made it."""


class AccountReceipt(NamedTuple):
    """A provider's receipt, and the account that reported it."""

    account_id: int
    receipt: DeliveryReceipt


def needs_gate_lock(receipt: DeliveryReceipt) -> bool:
    """Return whether a receipt may forbid later sends: applying it needs the gate lock."""
    return receipt.type == E.UNSUBSCRIBED or _may_suppress(receipt)


def _may_suppress(receipt: DeliveryReceipt | Receipt) -> bool:
    return receipt.soft or receipt.type in SUPPRESSES


class AppliedReceipts(NamedTuple):
    """The keys of receipts, by what was done with them."""

    applied: set[UUID]
    """One of them counts, or was dropped."""
    early: set[UUID]
    """One of them has to be tried again."""
    unknown: set[UUID]
    """All their receipts are for attempts that are not the account's."""


def apply_provider_receipts(
    receipts_by_key: Mapping[UUID, Sequence[AccountReceipt]],
) -> AppliedReceipts:
    """Apply what accounts report, by any key; return what was done with each key.

    Two kinds are dropped: a receipt for another account's attempt, and a failure of an attempt that
    was followed by another. Call this in a transaction that has the gate locks of all organizations
    for whose receipts `needs_gate_lock` is true.
    """
    entries = [
        (key, account_id, receipt)
        for key, found in receipts_by_key.items()
        for account_id, receipt in found
    ]
    attempts = reported_attempts.read_and_lock(
        {receipt.attempt_id for _, _, receipt in entries} - {None}
    )
    result = AppliedReceipts(set(), set(), {key for key, *_ in entries})
    receipts = []
    unsubscribed: set[UUID] = set()
    for key, account_id, receipt in entries:
        attempt = attempts.get(receipt.attempt_id)
        if attempt is None or attempt.account_id != account_id:
            continue
        result.unknown.discard(key)
        if _is_early(attempt, receipt):
            result.early.add(key)
            continue
        result.applied.add(key)
        if attempt.is_last or receipt.type not in FAILURES:
            if receipt.type == E.UNSUBSCRIBED:
                unsubscribed.add(attempt.delivery_id)
            receipts.append(_receipt(attempt, receipt))
    if receipts:
        _apply(receipts)
    opt_outs.record(unsubscribed)
    return result


def _is_early(attempt: ReportedAttempt, receipt: DeliveryReceipt) -> bool:
    """Return whether a receipt has to wait for the outcome of what is under way.

    A delivery that waits to be sent again, or on another channel, is ended by a confirmation of an
    earlier attempt; other receipts wait until that is decided.
    """
    if attempt.status == Status.ACCEPTED:
        return receipt.type not in CONFIRMS and receipt.type != E.UNSUBSCRIBED
    return attempt.status == Status.SENDING


def _receipt(attempt: ReportedAttempt, reported: DeliveryReceipt) -> Receipt:
    return Receipt(
        attempt.delivery_id,
        reported.type,
        reported.reason,
        attempt.channel,
        attempt.provider,
        attempt.account_id,
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
        _take_gate_locks([receipt.delivery_id for receipt in receipts if _may_suppress(receipt)])
        _apply(receipts)


def _take_gate_locks(delivery_ids: Collection[UUID]) -> None:
    if not delivery_ids:
        return
    rows = sql.read_in_order(_ORGANIZATIONS, [sql.array([str(each) for each in delivery_ids])])
    gate_lock.take_exclusive(organization_id for (organization_id,) in rows)


def _apply(receipts: Sequence[Receipt]) -> None:
    by_delivery: dict[UUID, list[Receipt]] = {}
    for receipt in receipts:
        by_delivery.setdefault(receipt.delivery_id, []).append(receipt)
    text = _READ.replace(":trace", spans.context_of("d.message_id"))
    rows = sql.read_in_order(text, [sql.array([str(each) for each in by_delivery])])
    known = [_Known(*row) for row in rows]
    events: list[EventRow] = []
    now = clock.now()
    for each in known:
        found = by_delivery[each.id]
        spans.received(each.id, each.traceparent, (receipt.type for receipt in found))
        for receipt in found:
            events += [_event(each, receipt, kind, now) for kind in each.add(receipt)]
    _move({each: each.final(by_delivery[each.id]) for each in known}, by_delivery, now)
    write_events(events)
    suppressions.suppress(
        [
            *(entry for each in known for entry in each.suppressed(by_delivery[each.id])),
            *soft_bounces.find_dead_addresses([r.delivery_id for r in receipts if r.soft], now),
        ]
    )


def _move(
    statuses: Mapping["_Known", Status | None],
    by_delivery: Mapping[UUID, Sequence[Receipt]],
    now: datetime,
) -> None:
    """Change the statuses; None stays.

    A delivery that waits to be sent takes the way of one that was, within the transaction: SENDING
    is never visible. A failure while another channel is left makes the fallback due now.
    """
    waiting = [
        e for e, new in statuses.items() if e.status == Status.ACCEPTED and new is Status.DELIVERED
    ]
    apply_transitions([each.resumed(by_delivery[each.id], now) for each in waiting])
    apply_transitions([Transition(id=each.id, status=Status.SENT, due_at=None) for each in waiting])
    failed = [each for each, new in statuses.items() if new is Status.FAILED]
    moving_on = [each for each in failed if each.fallback_after is not None]
    sent = [each for each in moving_on if each.status == Status.SENT]
    sql.update(Delivery, [{"id": each.id, "due_at": now} for each in sent])
    changes = {each: new for each, new in statuses.items() if new and each not in sent}
    changes |= {each: Status.SENT for each in moving_on if each not in sent}
    apply_transitions(
        [
            Transition(
                id=each.id,
                status=status,
                due_at=now if each in moving_on else each.fallback_at(status, now),
                reason=StatusReason.PROVIDER_ERROR if status is Status.FAILED else None,
            )
            for each, status in changes.items()
        ]
    )


class _SeenEvent(NamedTuple):
    """An event of a delivery."""

    channel: str
    type: str
    machine: bool = False


@dataclass(slots=True, eq=False)
class _Known:
    """A delivery, and its events so far."""

    id: UUID
    organization_id: str
    message_id: UUID
    channel: str
    address: str | None
    provider: str | None
    status: str
    fallback_after: int | None
    """The seconds after which an unconfirmed delivery falls back; None: it does not."""
    events: Sequence[tuple[str, str, bool]] | None
    traceparent: str | None
    seen: set[_SeenEvent] = field(init=False)

    def __post_init__(self) -> None:
        self.seen = {_SeenEvent(*event) for event in self.events or ()}

    def fallback_at(self, status: Status, now: datetime) -> datetime | None:
        """Return when the delivery falls back, if a receipt confirms that it was sent."""
        if status is not Status.SENT or self.fallback_after is None:
            return None
        return now + timedelta(seconds=self.fallback_after)

    def resumed(self, receipts: Sequence[Receipt], now: datetime) -> Transition:
        """Return the transition that takes a delivery which waits, for its confirmed attempt."""
        counting = [each for each in receipts if each.type in CONFIRMS and not self._is_past(each)]
        confirmed = (counting or receipts)[0]
        channel = confirmed.channel or self.channel
        return Transition(
            id=self.id,
            status=Status.SENDING,
            due_at=now,
            waiting=None,
            channel=channel,
            provider=confirmed.provider or (self.provider if channel == self.channel else None),
            account_id=confirmed.account_id,
        )

    def add(self, receipt: Receipt) -> list[EventType]:
        """Return the types of the events that a receipt adds, and remember them."""
        channel = receipt.channel or self.channel
        kinds = IMPLIES.get(receipt.type, ())
        new = [kind for kind in kinds if _SeenEvent(channel, kind) not in self.seen]
        if receipt.machine:
            new = [kind for kind in new if _SeenEvent(channel, kind, True) not in self.seen]
        self.seen |= {_SeenEvent(channel, kind, _is_by_machine(receipt, kind)) for kind in new}
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
        return _SeenEvent(self.channel, kind) in self.seen

    def _is_past(self, receipt: Receipt) -> bool:
        """Return whether a receipt is from a channel before the fallback, and confirms nothing."""
        if receipt.channel in (None, self.channel):
            return False
        bounced = _SeenEvent(Channel.EMAIL, E.BOUNCED) in self.seen
        return receipt.type not in CONFIRMS or (receipt.channel == Channel.EMAIL and bounced)


def _is_by_machine(receipt: Receipt, kind: str) -> bool:
    return receipt.machine and kind in BY_PERSON_OR_MACHINE


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
    machine = _is_by_machine(receipt, kind)
    detail = {"reason": receipt.reason, "soft": receipt.soft, "machine": machine}
    return {name: value for name, value in detail.items() if value} or None
