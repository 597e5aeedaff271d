"""States of provider accounts and of their circuits in words."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from messaging.delivery.accounts import CircuitState
from messaging.models import CircuitChange, ProviderAccount
from messaging.reports.account_hour import AccountSummary

State = ProviderAccount.State
Why = CircuitChange.Why

CIRCUITS = {
    CircuitState.CLOSED: "closed, it sends",
    CircuitState.OPEN: "open, it does not send for now",
    CircuitState.HALF_OPEN: "half open, a few sends probe it",
}
"""The state of a circuit breaker in words."""
CIRCUIT_COLOURS = {
    CircuitState.CLOSED: "good",
    CircuitState.OPEN: "bad",
    CircuitState.HALF_OPEN: "warn",
}
CHANGES = {
    Why.REFUSED: ("Opened", "its provider refused the account", "bad"),
    Why.FAILING: ("Opened", "too many of its sends failed", "bad"),
    Why.PROBE_FAILED: ("Open again", "a send that probed it failed", "bad"),
    Why.ANSWERED: ("Closed", "the sends that probed it were answered", "good"),
}
"""A change of a circuit in words, its cause, and the name of the colour."""
STATES = {
    State.ACTIVE: ("Active", "good"),
    State.PAUSED: ("Paused", "warn"),
    State.DRAINING: ("Draining", "warn"),
    State.DRAFT: ("Not active yet", "info"),
}
"""The state of an account in words, and the name of its colour."""
EXPLAINED = {
    State.ACTIVE: "It is used by the routing order.",
    State.PAUSED: "It takes nothing. Other accounts of the channel take over; without one, "
    "messages wait.",
    State.DRAINING: "It takes nothing new, and finishes what it has tried before.",
    State.DRAFT: "Nothing is sent by it until it is activated.",
}
"""What follows from a state."""


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """A change of a circuit in words."""

    at: datetime
    title: str
    cause: str
    colour: str


def changes(rows: Iterable[CircuitChange]) -> list[ChangeLine]:
    """Return changes of a circuit in words."""
    return [ChangeLine(row.at, *CHANGES[Why(row.why)]) for row in rows]


def hour(summary: AccountSummary) -> str:
    """Return a summary of an account's attempts in the last hour."""
    if not summary.sends:
        return "nothing sent"
    text = f"{summary.sends} sent: {summary.accepted} accepted, {summary.failed} failed"
    return text if summary.p95_ms is None else f"{text}, p95 {summary.p95_ms} ms"


def duration(seconds: float) -> str:
    """Return a duration in words, such as `3 min`."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"
