"""States of provider accounts and of their circuits in words."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from messaging.delivery.accounts import CircuitState
from messaging.domain.attention import AccountStatus
from messaging.models import CircuitChange, ProviderAccount
from messaging.reports.account_hour import AccountHour

State = ProviderAccount.State
Why = CircuitChange.Why

CIRCUITS = {
    CircuitState.CLOSED: "closed",
    CircuitState.OPEN: "stopped after failures; retrying",
    CircuitState.HALF_OPEN: "being retried after failures",
}
"""The state of a circuit breaker in words."""
CIRCUIT_COLOURS = {
    CircuitState.CLOSED: "muted-status",
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
SENDING = {
    AccountStatus.OK: ("Active", "good"),
    AccountStatus.DEGRADED: ("Partly failing", "warn"),
    AccountStatus.DOWN: ("Failing", "bad"),
    AccountStatus.PAUSED: ("Paused", "warn"),
    AccountStatus.DRAINING: ("Draining", "warn"),
}
"""Whether an account that was activated sends, in words, and the name of the colour."""
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


def state(row: ProviderAccount, hour: AccountHour) -> tuple[str, str]:
    """Return the state of an account in words, and the name of its colour: one that fails is red
    or amber, whatever state it was put in.
    """
    return STATES[State.DRAFT] if row.state == State.DRAFT else SENDING[hour.status]


def hour(summary: AccountHour) -> str:
    """Return a summary of an account's attempts in the last hour."""
    outcomes = summary.outcomes
    if not outcomes.sends:
        return "nothing sent"
    text = f"{outcomes.sends:,} sent: {outcomes.accepted:,} accepted, {summary.failed:,} failed"
    return text if outcomes.p95_ms is None else f"{text}, p95 {outcomes.p95_ms} ms"
