"""Receipts: applied in batches, in any order and any number of times, with the same final state.

`messaging.domain.progress.receipts` decides what they change; this reads, locks and writes.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import transaction

from messaging.consent import gate_lock, opt_outs, soft_bounces, suppressions
from messaging.domain.progress.receipts import (
    CONFIRMS,
    FAILURES,
    NO_EVENT,
    OPT_OUT_EVENTS,
    SUPPRESSES,
    E,
    Fold,
    FoldedDelivery,
    Moves,
    Receipt,
    ReceivedEvent,
    SentDelivery,
    fold,
    moves,
)
from messaging.domain.statuses import Status
from messaging.store import due_work, locks
from messaging.store.due_work import NewDueTime
from messaging.store.events import EventRow, write_events
from messaging.store.feedback import receipts as store
from messaging.store.feedback.receipts import ReportedAttempt
from messaging.store.transitions import apply_transitions
from messaging.telemetry import spans
from rme.core.db import clock
from rme.core.outcomes import OptOut
from rme.core.provider import DeliveryReceipt


class AccountReceipt(NamedTuple):
    """A provider's receipt, and the account that reported it."""

    account_id: int
    receipt: DeliveryReceipt


def needs_gate_lock(receipt: DeliveryReceipt) -> bool:
    """Return whether a receipt may forbid later sends: applying it needs the gate lock."""
    may_suppress = receipt.soft or receipt.type in SUPPRESSES or receipt.opt_out is not None
    return receipt.type == E.UNSUBSCRIBED or may_suppress


class AppliedReceipts(NamedTuple):
    """The keys of receipts, by what was done with them."""

    applied: set[UUID]
    """One of them counts, or was dropped."""
    early: set[UUID]
    """One of them has to be tried again."""
    missing: set[UUID]
    """The attempt of one of them was not found."""
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
        for key, account_receipts in receipts_by_key.items()
        for account_id, receipt in account_receipts
    ]
    attempts = store.read_and_lock(
        {receipt.attempt_id for _, _, receipt in entries if receipt.attempt_id}
    )
    result = AppliedReceipts(set(), set(), set(), {key for key, *_ in entries})
    receipts = []
    unsubscribed: set[UUID] = set()
    for key, account_id, receipt in entries:
        attempt = attempts.get(receipt.attempt_id) if receipt.attempt_id else None
        if attempt is None:
            result.missing.add(key)
            continue
        if attempt.account_id != account_id:
            continue
        result.unknown.discard(key)
        if _is_early(attempt, receipt):
            result.early.add(key)
            continue
        result.applied.add(key)
        if receipt.type == E.UNSUBSCRIBED or receipt.opt_out is OptOut.UNSUBSCRIBED:
            unsubscribed.add(attempt.delivery_id)
        if _is_of_delivery(attempt, receipt):
            receipts.append(_receipt(attempt, receipt))
        elif receipt.opt_out:
            kind = OPT_OUT_EVENTS.get(receipt.opt_out, NO_EVENT)
            receipts.append(_receipt(attempt, receipt)._replace(type=kind))
    if receipts:
        _apply(receipts)
    opt_outs.record(unsubscribed)
    return result


def _is_early(attempt: ReportedAttempt, receipt: DeliveryReceipt) -> bool:
    """Return whether a receipt must wait for the outcome of the delivery's current attempt.

    If a delivery waits for a retry or another channel, a confirmation of an earlier attempt ends
    it. Other receipts wait, except opt-outs, which must count before the next attempt.
    """
    if attempt.status == Status.ACCEPTED:
        is_opt_out = receipt.type == E.UNSUBSCRIBED or receipt.opt_out is not None
        return receipt.type not in CONFIRMS and not is_opt_out
    return attempt.status == Status.SENDING


def _is_of_delivery(attempt: ReportedAttempt, receipt: DeliveryReceipt) -> bool:
    """Return whether a receipt concerns the delivery, and not only an earlier attempt."""
    if receipt.type not in FAILURES:
        return True
    return attempt.is_last and attempt.status != Status.ACCEPTED


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
        opt_out=reported.opt_out,
    )


def apply(receipts: Sequence[Receipt]) -> None:
    """Apply receipts in one transaction; those of deliveries that do not exist are dropped.

    The number of statements does not depend on the number of receipts.
    """
    if not receipts:
        return
    with transaction.atomic():
        suppressing = [receipt.delivery_id for receipt in receipts if receipt.may_suppress]
        if suppressing:
            gate_lock.take_exclusive(store.organizations_of(suppressing))
        locks.lock({receipt.delivery_id for receipt in receipts})
        _apply(receipts)


def _apply(receipts: Sequence[Receipt]) -> None:
    """Apply receipts of deliveries that this transaction has locked."""
    by_delivery: dict[UUID, list[Receipt]] = {}
    for receipt in receipts:
        by_delivery.setdefault(receipt.delivery_id, []).append(receipt)
    folded: list[FoldedDelivery] = []
    for delivery in store.read_sent(by_delivery):
        ours = by_delivery[delivery.id]
        types = [receipt.type for receipt in ours if receipt.type]
        spans.received(delivery.id, delivery.traceparent, types)
        folded.append(FoldedDelivery(delivery, ours, fold(delivery, ours)))
    now = clock.now()
    _move(moves(folded, now), now)
    write_events(
        [
            _event(delivery, event, now)
            for delivery, _, changes in folded
            for event in changes.events
        ]
    )
    suppressions.suppress(
        [
            *(entry for delivery, _, changes in folded for entry in _suppressed(delivery, changes)),
            *soft_bounces.find_dead_addresses([r.delivery_id for r in receipts if r.soft], now),
        ]
    )


def _move(changes: Moves, now: datetime) -> None:
    """Change the statuses."""
    apply_transitions(changes.resumed)
    apply_transitions(changes.resent)
    due_work.set_due([NewDueTime(delivery_id, now) for delivery_id in changes.due])
    apply_transitions(changes.changed)


def _suppressed(delivery: SentDelivery, changes: Fold) -> list[suppressions.NewSuppression]:
    return [
        suppressions.NewSuppression(
            delivery.organization_id,
            delivery.channel,
            delivery.address or "",
            reason,
            "PROVIDER",
            test=delivery.test,
        )
        for reason in changes.suppress_as
    ]


def _event(delivery: SentDelivery, event: ReceivedEvent, now: datetime) -> EventRow:
    kind, receipt = event
    machine = receipt.is_by_machine(kind)
    detail = {"reason": receipt.reason, "soft": receipt.soft, "machine": machine}
    return EventRow(
        delivery.organization_id,
        delivery.message_id,
        delivery.id,
        kind,
        now,
        channel=receipt.channel or delivery.channel,
        provider=receipt.provider or delivery.provider,
        detail={name: value for name, value in detail.items() if value} or None,
        test=delivery.test,
    )
