"""The counts of minutes and hours, beside the events and attempts."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from messaging.domain.statuses import EventType, Status
from messaging.models import Delivery, Event, HourCount, MinuteCount
from messaging.statistics import minutes
from messaging.store.reports.statistics import NOW
from rme.core.outcomes import Accepted, Gone, Misconfigured, Rejected, Retryable, Unknown
from tests.simulation.world.state import Finding, State

WHOLE_HOURS = timedelta(hours=3)
"""After so much time the hours of a history are over, though a clock may be ahead."""
_OUTCOMES = (Accepted, Retryable, Rejected, Gone, Misconfigured, Unknown)
_SAME = ("accepted", "sent", "delivered", "blocked", "expired", "cancelled")
_NOT_SENT = (Status.FAILED, Status.BLOCKED, Status.EXPIRED)
_ENDS = (EventType.FAILED, EventType.BOUNCED, EventType.BLOCKED, EventType.EXPIRED)


def counts(state: State) -> Finding:
    """Return counts of minutes and hours that are not those of the events and attempts."""
    with state.history.shape.in_place():
        while minutes.count_slice(state.history.clock.moment + WHOLE_HOURS):
            pass
    counted = _sums(MinuteCount)
    wanted = _of_events(state) + _of_attempts(state)
    for key in sorted(counted.keys() | wanted.keys(), key=str):
        if counted[key] != wanted[key]:
            yield f"{counted[key]} {key} are counted of {wanted[key]}"
    hours = _sums(HourCount)
    statuses = Counter({key: hours.pop(key) for key in list(hours) if key[0].startswith(NOW)})
    if hours != counted:
        yield f"the hours have {hours - counted} more and {counted - hours} less than their minutes"
    if statuses != (stored := _of_deliveries()):
        yield f"statuses: {statuses - stored} more and {stored - statuses} less than deliveries"


def _sums(model: type[MinuteCount] | type[HourCount]) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for outcome, reason, count in model.objects.values_list("outcome", "reason", "count"):
        found[outcome, reason] += count
    return found


def _of_deliveries() -> Counter[Any]:
    """Count the deliveries by their status, and those without success by their reason too."""
    found: Counter[Any] = Counter()
    for status, reason in Delivery.objects.values_list("status", "reason"):
        has_reason = status in _NOT_SENT and reason in minutes.REASONS
        found[NOW + status.lower(), reason if has_reason else ""] += 1
    return found


def _of_events(state: State) -> Counter[Any]:
    """Count the events by type and reason; a bounce that ended a delivery is a failure."""
    found: Counter[Any] = Counter()
    for each in state.events:
        if each.type in _SAME and each.type not in _ENDS:
            found[each.type, ""] += 1
        elif each.type in _ENDS and not _is_past(each, state):
            kind = "failed" if each.type == EventType.BOUNCED else each.type
            found[kind, _reason(each)] += 1
    return found


def _is_past(event: Event, state: State) -> bool:
    """Return whether a bounce did not end its delivery, or its failure is recorded, too."""
    if event.type != EventType.BOUNCED:
        return False
    others: Sequence[Event] = state.kinds[event.delivery_id]
    has_failed = any(each.type == EventType.FAILED for each in others)
    return has_failed or state.deliveries[event.delivery_id].status != Status.FAILED


def _reason(event: Event) -> str:
    reason = str((event.detail or {}).get("reason", ""))
    if reason in minutes.REASONS:
        return reason
    others = {EventType.EXPIRED: "EXPIRED", EventType.BLOCKED: ""}
    return others.get(EventType(event.type), "PROVIDER_ERROR")


def _of_attempts(state: State) -> Counter[Any]:
    outcomes = Counter(sent.row.outcome for sent in state.attempts.values())
    return Counter(
        {
            (f"attempt_{kind.__name__.lower()}", ""): outcomes[kind.__name__]
            for kind in _OUTCOMES
            if outcomes[kind.__name__]
        }
    )
