"""States of provider accounts and of their circuits in words."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from messaging.domain.attention import AccountStatus
from messaging.models import CircuitChange, ProviderAccount
from messaging.reports.account_hour import AccountHour

State = ProviderAccount.State
Why = CircuitChange.Why

CHANGES = {
    Why.REFUSED: (_("Stopped"), _("the provider refused the account"), "bad"),
    Why.FAILING: (_("Stopped"), _("too many sends failed"), "bad"),
    Why.PROBE_FAILED: (_("Still stopped"), _("a retry failed"), "bad"),
    Why.ANSWERED: (_("Sending again"), _("the provider answered the retries"), "good"),
}
"""A change of a circuit in words, its cause, and the name of the colour."""
STATES = {
    State.ACTIVE: (_("Active"), "good"),
    State.PAUSED: (_("Paused"), "warn"),
    State.DRAINING: (_("Draining"), "warn"),
    State.DRAFT: (_("Draft"), "info"),
}
"""The state of an account in words, and the name of its colour."""
SENDING = {
    AccountStatus.OK: (_("Active"), "good"),
    AccountStatus.DEGRADED: (_("Partly failing"), "warn"),
    AccountStatus.DOWN: (_("Failing"), "bad"),
    AccountStatus.PAUSED: (_("Paused"), "warn"),
    AccountStatus.DRAINING: (_("Draining"), "warn"),
}
"""Whether an account that was activated sends, in words, and the name of the colour."""
STATE_NOTICES = {
    State.ACTIVE: _("Active: %(accounts)s."),
    State.PAUSED: _("Paused: %(accounts)s."),
    State.DRAINING: _("Draining: %(accounts)s."),
}
"""What to say once accounts were put in a state."""
EXPLAINED = {
    State.ACTIVE: _("It sends in its place in the routing order."),
    State.PAUSED: _(
        "It sends nothing. Other accounts of the channel take over; without one, messages wait."
    ),
    State.DRAINING: _("It takes no new messages, and finishes those that it has tried."),
    State.DRAFT: _("It sends nothing until you activate it."),
}
"""What follows from a state."""


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """A change of a circuit in words."""

    at: datetime
    title: str
    text: str
    """Its cause."""
    colour: str


def changes(rows: Iterable[CircuitChange]) -> list[ChangeLine]:
    """Return changes of a circuit in words."""
    return [ChangeLine(row.at, *map(str, CHANGES[Why(row.why)])) for row in rows]


def state(row: ProviderAccount, hour: AccountHour) -> tuple[str, str]:
    """Return the state of an account in words, and the name of its colour: one that fails is red
    or amber, whatever state it was put in.
    """
    words, colour = STATES[State.DRAFT] if row.state == State.DRAFT else SENDING[hour.status]
    return str(words), colour


def hour(summary: AccountHour) -> str:
    """Return a summary of an account's attempts in the last hour."""
    outcomes = summary.outcomes
    if not outcomes.sends:
        return gettext("Nothing sent")
    text = (
        gettext("%(sends)s sent: %(accepted)s accepted, %(failed)s failed")
        if not outcomes.p95_ms
        else gettext("%(sends)s sent: %(accepted)s accepted, %(failed)s failed, p95 %(p95)s ms")
    )
    return text % {
        "sends": f"{outcomes.sends:,}",
        "accepted": f"{outcomes.accepted:,}",
        "failed": f"{summary.failed:,}",
        "p95": f"{outcomes.p95_ms:,}" if outcomes.p95_ms is not None else "",
    }
