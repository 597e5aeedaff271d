"""Receipts: what they imply, and how they fold into a delivery's status, in any order.

The status follows from all events on the delivery's channel, not from the receipt that came last.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from messaging.domain.channels import Channel
from messaging.domain.progress.transitions import Transition
from messaging.domain.statuses import EventType, Status, StatusReason

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

NO_EVENT = ""
"""The type of a receipt that adds no event, like an earlier complaint that stopped an attempt."""
OPT_OUT_EVENTS: Mapping[str, EventType] = {"STOP": E.UNSUBSCRIBED, "UNSUBSCRIBED": E.UNSUBSCRIBED}
"""The events of opt-outs that a failure reports. An earlier complaint isn't a new event."""
OPT_OUT_SUPPRESSES: Mapping[str, str] = {"STOP": "STOP", "COMPLAINT": "COMPLAINT"}
"""Why an opt-out suppresses the address; one from a list only counts for the category."""
FAILURES = frozenset({E.FAILED, E.BOUNCED})
SUPPRESSES: Mapping[str, str] = {E.BOUNCED: "HARD_BOUNCE", E.COMPLAINED: "COMPLAINT"}

BY_PERSON_OR_MACHINE = frozenset({E.OPEN, E.CLICK})
"""Events that are recorded once for a person and once for a machine."""
CONFIRMS = frozenset(kind for kind, status in STATUS_OF.items() if status is Status.DELIVERED)


class Receipt(NamedTuple):
    """A receipt for a delivery that the provider accepted; `type` is an event's, or NO_EVENT."""

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
    opt_out: str | None = None
    """Of a failure: how the recipient had opted out with the provider, which did not send."""

    @property
    def suppresses_as(self) -> str | None:
        """Return the reason to suppress the address; None to leave it."""
        if self.opt_out:
            return OPT_OUT_SUPPRESSES.get(self.opt_out)
        return SUPPRESSES.get(self.type)

    @property
    def may_suppress(self) -> bool:
        """Return whether it may forbid later sends to the address."""
        return self.soft or self.type in SUPPRESSES or self.opt_out is not None

    def is_by_machine(self, kind: str) -> bool:
        """Return whether an event of a kind that it implies was a machine's."""
        return self.machine and kind in BY_PERSON_OR_MACHINE


class SeenEvent(NamedTuple):
    """An event that a delivery has."""

    channel: str
    type: str
    machine: bool = False


class SentDelivery(NamedTuple):
    """A delivery that receipts are for, and its events so far."""

    id: UUID
    organization_id: str
    message_id: UUID
    channel: str
    address: str | None
    provider: str | None
    status: str
    fallback_after: int | None
    """The seconds after which an unconfirmed delivery falls back; None: it does not."""
    seen: frozenset[SeenEvent]
    test: bool
    traceparent: str | None = None


class ReceivedEvent(NamedTuple):
    """An event that a receipt adds."""

    type: EventType
    receipt: Receipt


class Fold(NamedTuple):
    """What a delivery's receipts change."""

    events: Sequence[ReceivedEvent]
    status: Status | None
    """The status that follows from all events; None: no receipt changes a status."""
    suppress_as: Sequence[str]
    """The reasons to suppress the address."""


def fold(delivery: SentDelivery, receipts: Sequence[Receipt]) -> Fold:
    """Return what receipts change: the same events and status in whatever order they came."""
    seen = set(delivery.seen)
    events: list[ReceivedEvent] = []
    if len(receipts) > 1:
        receipts = sorted(receipts, key=lambda receipt: receipt.type not in CONFIRMS)
    for receipt in receipts:
        for kind in _new_events(delivery, receipt, seen):
            channel = receipt.channel or delivery.channel
            seen.add(SeenEvent(channel, kind, receipt.is_by_machine(kind)))
            events.append(ReceivedEvent(kind, receipt))
    return Fold(events, final_status(delivery, seen, receipts), _suppressed(delivery, receipts))


def _new_events(
    delivery: SentDelivery, receipt: Receipt, seen: set[SeenEvent]
) -> Sequence[EventType]:
    """Return the types of the events that a receipt adds to those that were seen."""
    channel = receipt.channel or delivery.channel
    kinds = IMPLIES.get(receipt.type, ())
    if receipt.soft and SeenEvent(channel, E.DELIVERED) in seen:
        return []  # an automatic reply (RFC 3834), which services report as a bounce
    opt_out = OPT_OUT_EVENTS.get(receipt.opt_out or "")
    if opt_out and opt_out not in kinds:
        kinds = (*kinds, opt_out)
    new = [kind for kind in kinds if SeenEvent(channel, kind) not in seen]
    if receipt.machine:
        new = [kind for kind in new if SeenEvent(channel, kind, True) not in seen]
    return new


def final_status(
    delivery: SentDelivery, seen: set[SeenEvent], receipts: Sequence[Receipt]
) -> Status | None:
    """Return the status that follows from all events; None if no receipt changes a status.

    A confirmation outweighs a failure, whichever came first. For an email, a bounce outweighs the
    confirmation. After a fallback, only a confirmation counts from the channel before.
    """
    moving = [r for r in receipts if r.type in STATUS_OF and not _is_past(delivery, seen, r)]
    if not moving:
        return None
    channel = delivery.channel
    if channel == Channel.EMAIL and SeenEvent(channel, E.BOUNCED) in seen:
        return Status.FAILED
    if any(STATUS_OF[receipt.type] is Status.DELIVERED for receipt in moving):
        return Status.DELIVERED
    if SeenEvent(channel, E.DELIVERED) in seen:
        return Status.DELIVERED
    has_failed = SeenEvent(channel, E.FAILED) in seen or SeenEvent(channel, E.BOUNCED) in seen
    return Status.FAILED if has_failed else Status.SENT


def _is_past(delivery: SentDelivery, seen: set[SeenEvent], receipt: Receipt) -> bool:
    """Return whether a receipt is from a channel before the fallback, and confirms nothing."""
    if receipt.channel in (None, delivery.channel):
        return False
    bounced = SeenEvent(Channel.EMAIL, E.BOUNCED) in seen
    return receipt.type not in CONFIRMS or (receipt.channel == Channel.EMAIL and bounced)


def _suppressed(delivery: SentDelivery, receipts: Sequence[Receipt]) -> list[str]:
    """Return why receipts of the delivery's current channel suppress its address."""
    if not delivery.address:
        return []
    return [
        receipt.suppresses_as
        for receipt in receipts
        if receipt.suppresses_as and receipt.channel in (None, delivery.channel)
    ]


# --- changes of statuses --------------------------------------------------------------------------


class FoldedDelivery(NamedTuple):
    """A delivery, its receipts, and what they change."""

    delivery: SentDelivery
    receipts: Sequence[Receipt]
    fold: Fold


class Moves(NamedTuple):
    """How statuses change, in this order; each step is one statement."""

    resumed: Sequence[Transition]
    """A delivery that waits to be sent takes the way of one that was, within the transaction:
    SENDING is never visible."""
    resent: Sequence[Transition]
    due: Sequence[UUID]
    """Deliveries that fall back now: a failure, while another channel is left."""
    changed: Sequence[Transition]


def moves(folded: Sequence[FoldedDelivery], now: datetime) -> Moves:
    """Return how the statuses of deliveries change."""
    confirmed = [
        entry
        for entry in folded
        if entry.delivery.status == Status.ACCEPTED and entry.fold.status is Status.DELIVERED
    ]
    due: list[UUID] = []
    changed: list[Transition] = []
    for delivery, _, (_, status, _) in folded:
        if status is None:
            continue
        falls_back = status is Status.FAILED and delivery.fallback_after is not None
        if falls_back and delivery.status == Status.SENT:
            due.append(delivery.id)
        elif falls_back:
            changed.append(Transition(id=delivery.id, status=Status.SENT, due_at=now, reason=None))
        else:
            reason = StatusReason.PROVIDER_ERROR if status is Status.FAILED else None
            due_at = _falls_back_at(delivery, status, now)
            changed.append(Transition(id=delivery.id, status=status, due_at=due_at, reason=reason))
    return Moves(
        [_resumed(entry, now) for entry in confirmed],
        [Transition(id=entry.delivery.id, status=Status.SENT, due_at=None) for entry in confirmed],
        due,
        changed,
    )


def _falls_back_at(delivery: SentDelivery, status: Status, now: datetime) -> datetime | None:
    """Return when the delivery falls back, if a receipt confirms that it was sent."""
    if status is not Status.SENT or delivery.fallback_after is None:
        return None
    return now + timedelta(seconds=delivery.fallback_after)


def _resumed(entry: FoldedDelivery, now: datetime) -> Transition:
    """Return the transition that takes a delivery which waits, for its confirmed attempt."""
    delivery, receipts, folded = entry
    seen = delivery.seen | {
        SeenEvent(r.channel or delivery.channel, kind, r.is_by_machine(kind))
        for kind, r in folded.events
    }
    counting = [r for r in receipts if r.type in CONFIRMS and not _is_past(delivery, set(seen), r)]
    confirmed = (counting or receipts)[0]
    channel = confirmed.channel or delivery.channel
    return Transition(
        id=delivery.id,
        status=Status.SENDING,
        due_at=now,
        waiting=None,
        channel=channel,
        provider=confirmed.provider or (delivery.provider if channel == delivery.channel else None),
        account_id=confirmed.account_id,
    )
