"""What refusals mean: one vocabulary, and one kind of table, for providers of email and SMS."""

import re
from collections.abc import Mapping, Sequence
from enum import Enum

from rme.core.outcomes import (
    Fault,
    Misconfigured,
    OptOut,
    Outcome,
    Rejected,
    Retryable,
    Unknown,
)
from rme.transport.messages import Reply, retry_after


class RefusalMeaning(Enum):
    """What a refusal means."""

    LATER = "the account takes nothing now; another try may work"
    MESSAGE_LATER = "this message is not taken now; the account works for others"
    ELSEWHERE = "this account does not take this message; another may"
    MISCONFIGURED = "the account's settings are wrong"
    SENDER = "the sender is refused: the request's, or the account's own"
    DEAD = "the address is dead: a hard bounce"
    STOPPED = "the recipient opted out with the provider"
    RECIPIENT = "this recipient will never be served"
    CONTENT = "this content will never be taken"

    def outcome(self, reason: str, seconds: float | None = None) -> Outcome:
        """Return the outcome; `seconds` is the wait that the provider asks for."""
        match self:
            case RefusalMeaning.LATER:
                return Retryable(reason, seconds)
            case RefusalMeaning.MESSAGE_LATER:
                return Retryable(reason, seconds, blames_account=False)
            case RefusalMeaning.MISCONFIGURED:
                return Misconfigured(reason)
            case RefusalMeaning.SENDER:
                return Misconfigured(reason, of_sender=True)
            case RefusalMeaning.ELSEWHERE:
                return Rejected(reason, Fault.ROUTE)
            case RefusalMeaning.CONTENT:
                return Rejected(reason, Fault.CONTENT)
            case RefusalMeaning.STOPPED:
                return Rejected(reason, opt_out=OptOut.STOP)
        return Rejected(reason, hard=self is RefusalMeaning.DEAD)


LATER, MESSAGE_LATER, ELSEWHERE = (
    RefusalMeaning.LATER,
    RefusalMeaning.MESSAGE_LATER,
    RefusalMeaning.ELSEWHERE,
)
MISCONFIGURED, SENDER = RefusalMeaning.MISCONFIGURED, RefusalMeaning.SENDER
DEAD, STOPPED, RECIPIENT = RefusalMeaning.DEAD, RefusalMeaning.STOPPED, RefusalMeaning.RECIPIENT
CONTENT = RefusalMeaning.CONTENT

Rows = Sequence[tuple[str, RefusalMeaning]]
"""Patterns of refusals and what they mean; the first row that matches decides."""


class RefusalTable:
    """Rows, compiled once."""

    def __init__(self, rows: Rows) -> None:
        self.rows = [(compile_row(row), meaning) for row, meaning in rows]

    def find(self, key: str) -> RefusalMeaning | None:
        """Return what a refusal means; None if no row matches."""
        return next((meaning for row, meaning in self.rows if row.fullmatch(key)), None)


def compile_row(row: str) -> re.Pattern[str]:
    """Return the pattern of a row, whose parts between `.*` match in order.

    Each part matches only its first occurrence (an atomic group). With plain `.*` a text that
    repeats one part and lacks the next would take quadratic time.
    """
    first, *parts = row.split(".*")
    later = "".join(f"(?>.*?{part})" for part in parts[:-1])
    end = f".*{parts[-1]}" if parts else ""
    return re.compile(first + later + end, re.IGNORECASE | re.DOTALL)


BY_STATUS: Mapping[int, RefusalMeaning] = {
    400: CONTENT,
    401: MISCONFIGURED,
    403: MISCONFIGURED,
    404: MISCONFIGURED,
    429: LATER,
    503: LATER,
}
"""What an HTTP status means for most services."""


def of_message(outcome: Outcome, sender: str) -> Outcome:
    """Return an outcome for a message whose request named `sender`; empty if it named none.

    If the provider refuses a named sender, it is the request's fault: another account may have it.
    """
    if sender and isinstance(outcome, (Misconfigured, Retryable)) and outcome.of_sender:
        return Rejected(outcome.reason, Fault.ROUTE)
    return outcome


def by_status(
    reply: Reply, reason: str, meanings: Mapping[int, RefusalMeaning] = BY_STATUS
) -> Outcome:
    """Return the outcome of a refusal by its HTTP status; Unknown for one without a meaning."""
    if meaning := meanings.get(reply.status):
        return meaning.outcome(reason, retry_after(reply))
    return Unknown(f"unexpected answer: {reply.status}")
