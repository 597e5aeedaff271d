"""The trace of each message: what `messaging.reports.trace` answers, beside what has happened."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from messaging.domain.planning import CHOSEN
from messaging.domain.statuses import EventType, Status
from messaging.models import Attempt, Delivery, Event
from messaging.reports import trace
from messaging.reports.trace import TraceStep
from tests.simulation.world.state import Finding, Sent, State, decision_of

_STEP_OF = {
    EventType.BLOCKED: "GATE",
    EventType.DEFERRED: "WAIT",
    EventType.FAILOVER: "FAILOVER",
    EventType.FALLBACK: "FALLBACK",
}
_GOES_ON = ("WAIT", "DECISION", "FAILOVER")
"""The steps after which a delivery is sent again on its channel."""


class _Traced(NamedTuple):
    """A delivery, what happened to it, and the steps of its trace."""

    row: Delivery
    attempts: Sequence[Sent]
    events: Sequence[Event]
    steps: Sequence[TraceStep]

    def at(self, *names: str) -> list[TraceStep]:
        return [each for each in self.steps if each.step in names]


def traced(state: State) -> Finding:
    """Return traces that are not what the attempts, the events and the statuses say."""
    for message_id in sorted({row.message_id for row in state.deliveries.values()}):
        rows = [row for row in state.deliveries.values() if row.message_id == message_id]
        rows.sort(key=lambda row: row.position)
        found = trace.of_record(trace.record_of(message_id))
        if [each.contact_id for each in found] != [row.contact_id for row in rows]:
            yield f"the trace of {message_id} has {len(found)} of {len(rows)} recipients"
            continue
        for row, recipient in zip(rows, found, strict=True):
            sent, events = state.of_delivery[row.pk], state.kinds[row.pk]
            one = _Traced(row, sent, events, recipient.steps)
            for each in (*_complete(one), *_explained(one)):
                yield f"the trace of {row.pk} {each}"


def _complete(one: _Traced) -> Finding:
    """Return steps that are missing, double or out of order."""
    wanted = Counter([*map(_of_attempt, (each.row for each in one.attempts)), *_of_events(one)])
    shown: Counter[tuple[object, ...]] = Counter(
        (each.step, each.result, each.channel, each.at) for each in one.steps
    )
    for (step, result, *_), count in (wanted - shown).items():
        yield f"lacks {count} steps {step} {result}"
    for (step, result, *_), count in (shown - wanted).items():
        yield f"has {count} steps {step} {result} too many"
    if any(later.at < earlier.at for earlier, later in pairwise(one.steps)):
        yield "is out of order"


def _of_attempt(row: Attempt) -> tuple[object, ...]:
    outcome = row.outcome.upper() if row.outcome else None
    return "ATTEMPT", outcome, row.channel, row.started_at


def _of_events(one: _Traced) -> list[tuple[object, ...]]:
    """Return the steps for which events stand. That of accept is the choice of the channel."""
    accepted = one.events[0]
    steps: list[tuple[object, ...]] = []
    chosen = [tuple(each) for each in one.row.trace or ()] or [(_first_channel(one.row), CHOSEN)]
    for channel, result, *_ in chosen:
        steps.append(("DECISION", result, channel, accepted.at))
    for each in one.events[1:]:
        step = "DECISION" if decision_of(each) else _STEP_OF.get(EventType(each.type))
        if step:
            result = decision_of(each) or (each.detail or {}).get("reason")
            steps.append((step, result, each.channel, each.at))
    return steps


def _first_channel(row: Delivery) -> str:
    return row.accepted_channel or row.channel


def _explained(one: _Traced) -> Finding:
    """Return what happened, and no step says why."""
    row, first = one.row, _first_channel(one.row)
    by_gate = row.status == Status.BLOCKED and one.events[0].type != EventType.BLOCKED
    if len(one.at("GATE")) != by_gate:
        yield f"has {len(one.at('GATE'))} gates, it is {row.status}"
    fallbacks = one.at("FALLBACK")
    went_on = row.channel != first or _is_confirmed_after(fallbacks, one)
    if [each.channel for each in fallbacks] != [first] * went_on:
        yield f"has {len(fallbacks)} fallbacks, from {first} to {row.channel}"
    for attempt in one.at("ATTEMPT"):
        for fallback in fallbacks:
            if (attempt.channel == first) != (attempt.at <= fallback.at):
                yield f"has an attempt on {attempt.channel} beyond the fallback"
    yield from _claims_explained(one)


def _is_confirmed_after(fallbacks: Sequence[TraceStep], one: _Traced) -> bool:
    """Return whether a receipt for the first channel ended the wait for the second."""
    return one.row.status == Status.DELIVERED and any(
        each.type == EventType.DELIVERED and each.channel == one.row.channel
        for fallback in fallbacks
        for each in one.events
        if each.at >= fallback.at
    )


def _claims_explained(one: _Traced) -> Finding:
    """Return attempts after others that no wait, decision or failover explains."""
    begun: dict[tuple[str, int], Attempt] = {}
    # What a worker stores after its lease has ended is not made.
    for each in one.attempts:
        if each.row.outcome or each.calls:
            begun.setdefault((each.row.channel, each.row.fence), each.row)
    for earlier, later in pairwise(sorted(begun.values(), key=lambda row: row.fence)):
        if earlier.channel == later.channel and not any(
            earlier.started_at <= each.at <= later.started_at for each in one.at(*_GOES_ON)
        ):
            yield f"does not say why {later.pk} followed {earlier.pk}"
    for event in one.events:
        if event.type != EventType.SENT:
            continue
        names = [
            each.row.provider
            for each in one.attempts
            if each.row.channel == event.channel and not each.reported
        ]
        moved = [name for name in names if name != event.provider]
        if event.provider in names and moved and not one.at("WAIT", "FAILOVER", "DECISION"):
            yield f"has no failover from {moved[0]} to {event.provider}"
