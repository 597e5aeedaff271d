"""Which sends may go now: whether an account may be sent to, and when and why not; and by how many
the accounts take, one delivery after the other, and all devices of a recipient or none.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from messaging.domain.progress.next_steps import BACKOFF_LIMIT

WINDOW = 50
"""The most sends of a process that are in doubt when it dies."""

A = TypeVar("A")
K = TypeVar("K", bound=Hashable)


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


class Admission(NamedTuple, Generic[A, K]):
    """Whether a delivery may go now."""

    routes: Sequence[Sequence[A]]
    """The accounts to try for each device: those that take no more now come last."""
    sends: Counter[K] | None
    """How many sends each account, by key, gets; None: the delivery waits."""


class Backlog(NamedTuple):
    """The messages that go before one that is accepted now, for accounts that have a rate."""

    key: tuple[object, ...]
    messages: float
    rate: int
    life: float
    """The seconds until a message expires."""

    def seconds_too_many(self, added: int) -> int:
        """Return for how many seconds a message would wait beyond its life, if `added` more go
        before it; 0: it goes in time.
        """
        beyond = (self.messages + added) / self.rate - self.life
        return 0 if beyond < 0 else max(1, math.ceil(beyond))


def admit(
    routes: Sequence[Sequence[A]], free: Mapping[K, int], key_of: Callable[[A], K]
) -> Admission[A, K]:
    """Return whether a delivery may go now, and by which accounts.

    `routes` has the accounts to try for each device. `free` is how many sends each account still
    takes; one without an entry takes any number.
    """
    ordered = [
        sorted(accounts, key=lambda account: free.get(key_of(account), 1) <= 0)
        for accounts in routes
    ]
    sends = Counter(key_of(accounts[0]) for accounts in ordered if accounts)
    may_go = all(free.get(key, 1) > 0 for key in sends)
    return Admission(ordered, sends if may_go else None)


class RateGrant(NamedTuple):
    """How many sends an account's rate allows now."""

    sends: int
    wait: float
    """After how many seconds it allows one more than those."""
    seconds_each: float


def rate_wait(
    sends: Mapping[K, int], used: Mapping[K, int], grants: Mapping[K, RateGrant]
) -> float | None:
    """Return how many seconds a delivery waits for its accounts' rates; None: it may go.

    `used` is how many sends of each account were granted to deliveries before.
    """
    seconds = []
    for key in sends:
        grant = grants[key]
        free = grant.sends - used.get(key, 0)
        if free <= 0:
            seconds.append(grant.wait - free * grant.seconds_each)
    return min(max(seconds), BACKOFF_LIMIT) if seconds else None
