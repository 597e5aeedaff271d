"""A delivery's statuses, what may follow each, and a message's status from its deliveries'.

This table is the only home of the state machine. `messaging.store.transitions` reads it, and
nothing else changes a status.
"""

from collections.abc import Iterable
from enum import StrEnum


class Status(StrEnum):
    ACCEPTED = "ACCEPTED"
    SCHEDULED = "SCHEDULED"
    SENDING = "SENDING"
    SENT = "SENT"
    DELIVERED = "DELIVERED"
    FAILED = "FAILED"
    BLOCKED = "BLOCKED"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"
    UNKNOWN = "UNKNOWN"


PRIORITIES = (0, 1)
"""Of deliveries, the first before the other: TRANSACTIONAL, and all else."""

S = Status

TRANSITIONS: dict[Status, frozenset[Status]] = {
    S.ACCEPTED: frozenset({S.SENDING, S.BLOCKED, S.EXPIRED, S.FAILED}),
    S.SCHEDULED: frozenset({S.ACCEPTED, S.CANCELLED, S.BLOCKED, S.EXPIRED}),
    S.SENDING: frozenset({S.SENT, S.ACCEPTED, S.BLOCKED, S.EXPIRED, S.FAILED, S.UNKNOWN}),
    S.SENT: frozenset({S.DELIVERED, S.FAILED, S.ACCEPTED}),
    S.DELIVERED: frozenset({S.FAILED}),
    S.FAILED: frozenset({S.DELIVERED}),
    S.BLOCKED: frozenset(),
    S.CANCELLED: frozenset(),
    S.EXPIRED: frozenset(),
    S.UNKNOWN: frozenset({S.SENT, S.DELIVERED, S.FAILED, S.ACCEPTED}),
}

_PRECEDENCE = (
    S.SENDING,
    S.SCHEDULED,
    S.UNKNOWN,
    S.DELIVERED,
    S.SENT,
    S.FAILED,
    S.EXPIRED,
    S.CANCELLED,
    S.BLOCKED,
)


def before(target: Status) -> list[Status]:
    """Return the statuses from which `target` may be reached."""
    return [status for status, following in TRANSITIONS.items() if target in following]


def aggregate(statuses: Iterable[str]) -> Status:
    """Return a message's status by its deliveries': that of all, or the first in precedence."""
    distinct = {Status(status) for status in statuses}
    if len(distinct) == 1:
        return distinct.pop()
    if S.ACCEPTED in distinct:
        distinct.add(S.SENDING)
    return next(status for status in _PRECEDENCE if status in distinct)


class WaitReason(StrEnum):
    """What an ACCEPTED delivery waits for (`waiting`)."""

    PAUSED = "PAUSED"
    """A pause covers it."""
    PROVIDER = "PROVIDER"
    """No provider account takes it now."""
    RATE = "RATE"
    """The rate of its account is used up."""
    PLATFORM = "PLATFORM"
    """The organization's platform, which has the contact, does not answer."""
    QUIET_HOURS = "QUIET_HOURS"
    """It is within the recipient's quiet hours."""


class StatusReason(StrEnum):
    """Why a delivery has its status (`reason`), as delivery, feedback and erasure set it. What
    accept and the gates refuse has the code of that error (`rme.core.errors`).
    """

    PROVIDER_ERROR = "PROVIDER_ERROR"
    UNREACHABLE = "UNREACHABLE"
    TEMPLATE_ERROR = "TEMPLATE_ERROR"
    EXPIRED = "EXPIRED"
    UNKNOWN_OUTCOME = "UNKNOWN_OUTCOME"


class EventType(StrEnum):
    """What can happen to a message, in the words that the API shows."""

    ACCEPTED = "accepted"
    SCHEDULED = "scheduled"
    SENT = "sent"
    DELIVERED = "delivered"
    OPEN = "open"
    CLICK = "click"
    DEFERRED = "deferred"
    FAILOVER = "failover"
    FALLBACK = "fallback"
    BOUNCED = "bounced"
    COMPLAINED = "complained"
    UNSUBSCRIBED = "unsubscribed"
    FAILED = "failed"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
