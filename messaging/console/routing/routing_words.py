"""States of provider accounts and of their circuits in words."""

from messaging.delivery.accounts import CircuitState
from messaging.models import ProviderAccount
from messaging.reports.account_hour import AccountSummary

State = ProviderAccount.State

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
