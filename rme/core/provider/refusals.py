"""What refusals mean: one vocabulary, and one kind of table, for providers of email and SMS."""

import re
from collections.abc import Mapping, Sequence
from enum import Enum

from rme.core.http.retry_after import retry_after
from rme.core.outcomes import Fault, Misconfigured, Outcome, Rejected, Retryable, Unknown
from rme.transport import Reply


class RefusalMeaning(Enum):
    """What a refusal means."""

    LATER = "not taken now; another try may work"
    MISCONFIGURED = "the account's settings are wrong"
    DEAD = "the address is dead: a hard bounce"
    RECIPIENT = "this recipient will never be served"
    CONTENT = "this content will never be taken"

    def outcome(self, reason: str, seconds: float | None = None) -> Outcome:
        """Return the outcome; `seconds` is the wait that the provider asks for."""
        match self:
            case RefusalMeaning.LATER:
                return Retryable(reason, seconds)
            case RefusalMeaning.MISCONFIGURED:
                return Misconfigured(reason)
            case RefusalMeaning.CONTENT:
                return Rejected(reason, Fault.CONTENT)
        return Rejected(reason, hard=self is RefusalMeaning.DEAD)


LATER, MISCONFIGURED, DEAD, RECIPIENT, CONTENT = RefusalMeaning

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


def by_status(
    reply: Reply, reason: str, meanings: Mapping[int, RefusalMeaning] = BY_STATUS
) -> Outcome:
    """Return the outcome of a refusal by its HTTP status; Unknown for one without a meaning."""
    if meaning := meanings.get(reply.status):
        return meaning.outcome(reason, retry_after(reply))
    return Unknown(f"unexpected answer: {reply.status}")
