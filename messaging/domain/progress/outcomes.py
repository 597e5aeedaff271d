"""The outcome of an attempt, as far as a delivery's next step depends on it.

A provider's outcome (`rme.core.outcomes`) says what the other side answered; `messaging.delivery`
reads one of these values from it.
"""

from enum import StrEnum
from typing import NamedTuple


class OutcomeKind(StrEnum):
    """The six outcomes, as `Attempt.outcome` stores them."""

    ACCEPTED = "Accepted"
    UNKNOWN = "Unknown"
    RETRYABLE = "Retryable"
    MISCONFIGURED = "Misconfigured"
    REJECTED = "Rejected"
    GONE = "Gone"


PRECEDENCE = {kind: place for place, kind in enumerate(OutcomeKind)}
"""Of several devices' outcomes, the one with the lowest number decides the delivery's status."""


class AttemptOutcome(NamedTuple):
    """What one attempt means for its delivery."""

    kind: OutcomeKind
    reason: str = ""
    retry_after: float | None = None
    """Seconds that the provider asks to wait."""
    is_tried: bool = True
    """False: nothing was sent, because there was no time or no free connection."""
    is_of_content: bool = False
    """Of a rejection: no account can send this message."""
    is_of_route: bool = False
    """Of a rejection: another account may send it."""
    is_bounce: bool = False
    """Of a rejection: the address does not exist."""
    is_unsubscribe: bool = False
    """Of a rejection: the recipient wrote STOP to the provider."""
    suppress_as: str | None = None
    """The reason to suppress the address; None to leave it."""

    @property
    def ends_device(self) -> bool:
        """Return whether no other account would reach the device or address."""
        is_rejection = self.kind is OutcomeKind.REJECTED
        return self.kind is OutcomeKind.GONE or (is_rejection and not self.is_of_route)
