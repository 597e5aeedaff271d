"""The answer to: may this account be sent to now, and if not, when and why?"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum


class CircuitState(StrEnum):
    """The state of an account's circuit breaker, as the health call shows it."""

    CLOSED = "CLOSED"
    OPEN = "OPEN"
    HALF_OPEN = "HALF_OPEN"


class UnavailableReason(StrEnum):
    """Why an account takes no more sends now."""

    CIRCUIT = "CIRCUIT"
    """Its circuit is not closed: only probes go."""
    RETRY_AFTER = "RETRY_AFTER"
    """The provider asked for no sends for some time."""
    SLOW = "SLOW"
    """It has left sends unanswered: as many as its adaptive limit allows are under way."""
    RATE = "RATE"
    """Its rate is used up."""


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether an account may be sent to now."""

    count: int | None = None
    """How many sends it takes now; None: any number."""
    wait: float = 0.0
    """After how many seconds it takes more, where that is known."""
    reason: UnavailableReason | None = None
    """What limits it; None: nothing does."""
    circuit: CircuitState = CircuitState.CLOSED

    @property
    def is_limited(self) -> bool:
        """Return whether the count of sends is limited."""
        return self.count is not None


def room(availabilities: Collection[Availability], requested: int) -> int:
    """Return how many of the requested sends the accounts take now, all together."""
    counts = [availability.count for availability in availabilities]
    return requested if None in counts else min(requested, sum(count or 0 for count in counts))
