"""How often, and on how many channels, a delivery may be sent."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from messaging.delivery.manual_review import Decision
from messaging.models import Delivery, Event
from tests.simulation.world.state import (
    IN_DOUBT,
    RESENDS,
    Finding,
    Sent,
    State,
    decision_of,
    is_held,
    is_resend,
)

_FAILED = {"failed", "bounced"}


class _Target(NamedTuple):
    """What was sent of a delivery to one device, or to the address of one channel."""

    name: str
    attempts: Sequence[Sent]
    resends: Sequence[Event]
    """The decisions to send it again: the category's, and people's."""
    is_held: bool

    @property
    def taken(self) -> list[Sent]:
        return [each for each in self.attempts if each.taken]

    @property
    def reviews(self) -> int:
        return sum(decision_of(each) == Decision.SEND_AGAIN for each in self.resends)


def sent_once(state: State) -> Finding:
    """Return what was sent twice outside of the stated window."""
    for key, count in state.world.calls.items():
        if count > 1:
            yield f"attempt {key} was handed over {count} times"
    for delivery_id, attempts in state.of_delivery.items():
        row = state.deliveries[delivery_id]
        resends = [each for each in state.kinds[delivery_id] if is_resend(each)]
        by_target: defaultdict[tuple[str, str], list[Sent]] = defaultdict(list)
        for sent in attempts:
            by_target[sent.row.channel, str(sent.row.device_id or "")].append(sent)
        for (channel, device), some in by_target.items():
            own = [each for each in resends if each.channel == channel]
            name = f"{delivery_id} on {channel} {device}".rstrip()
            target = _Target(name, some, own, is_held(row.category, channel))
            for check in (_too_often, _too_early, _failed_over):
                yield from check(target)
        yield from _on_two_channels(row, attempts, resends, row.message_id in state.first_delivered)


def _too_often(target: _Target) -> Finding:
    taken = target.taken
    if len(taken) > 1 + RESENDS + target.reviews:
        yield f"{target.name} was sent {len(taken)} times"
    if len(taken) > 1 + target.reviews and target.is_held:
        yield f"{target.name} was sent {len(taken)} times, and its category holds what is unknown"
    for place, each in enumerate(sorted(taken, key=lambda each: each.row.started_at)):
        decided = sum(event.at <= each.row.started_at for event in target.resends)
        if place > decided:
            yield f"{target.name} was sent {place + 1} times, it was decided {decided} times"


def _too_early(target: _Target) -> Finding:
    """Return what was sent again after an attempt that was not in doubt."""
    taken = target.taken
    for each in taken:
        later = [other for other in taken if other.row.fence > each.row.fence]
        # An outcome that comes after the decision to send again is stored with the attempt alone.
        was_in_doubt = each.row.outcome in IN_DOUBT or (target.resends and each.row.sent_at is None)
        if later and not was_in_doubt:
            yield f"{target.name} was sent again after an attempt that is {each.row.outcome}"


def _failed_over(target: _Target) -> Finding:
    """Return failovers from an attempt that may have been taken."""
    for fence in {each.row.fence for each in target.attempts}:
        own = [each.row.outcome for each in target.attempts if each.row.fence == fence]
        if len(own) > 1 and any(outcome in ("Unknown", "Accepted") for outcome in own[:-1]):
            yield f"{target.name} failed over from {own}"


def _on_two_channels(
    row: Delivery, attempts: Sequence[Sent], resends: Sequence[Event], first_delivered: bool
) -> Finding:
    """Return what went by the next channel though it had gone, or may have gone, by the first.

    A message that is to be confirmed goes on after it was sent, and any after its provider has
    reported a failure. What is to be sent again goes on if the first channel's gates stop it.
    """
    taken = [each for each in attempts if each.taken]
    for each in taken:
        later = [other for other in taken if other.row.fence > each.row.fence]
        goes_on = first_delivered and (each.row.outcome == "Accepted" or each.reported)
        was_resent = any(event.channel == each.row.channel for event in resends)
        if goes_on or was_resent or each.reported & _FAILED:
            continue
        for other in later:
            if other.row.channel != each.row.channel:
                outcome = f"{each.row.outcome} on {each.row.channel}"
                yield f"{row.pk} was sent on {other.row.channel}, and was {outcome}"
