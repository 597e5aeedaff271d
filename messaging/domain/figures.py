"""The figures of accepted deliveries: each delivery is in exactly one, by its status."""

from collections.abc import Mapping
from enum import StrEnum

from messaging.domain.statuses import Status


class Figure(StrEnum):
    """What has become of a delivery. Together the figures cover all accepted deliveries."""

    DELIVERED = "delivered"
    SENT = "sent"
    """The provider has it, and has confirmed nothing yet."""
    WAITING = "waiting"
    FAILED = "failed"
    NOT_SENT = "not_sent"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


STATUSES: Mapping[Figure, tuple[Status, ...]] = {
    Figure.DELIVERED: (Status.DELIVERED,),
    Figure.SENT: (Status.SENT,),
    Figure.WAITING: (Status.ACCEPTED, Status.SCHEDULED, Status.SENDING, Status.UNKNOWN),
    Figure.FAILED: (Status.FAILED,),
    Figure.NOT_SENT: (Status.BLOCKED,),
    Figure.EXPIRED: (Status.EXPIRED,),
    Figure.CANCELLED: (Status.CANCELLED,),
}
"""The statuses of each figure. The list behind a figure shows deliveries with these."""
FIGURE_OF = {status: figure for figure, statuses in STATUSES.items() for status in statuses}


def figures(counts: Mapping[Status, int]) -> dict[Figure, int]:
    """Return the figures of deliveries, counted by their statuses."""
    sums = dict.fromkeys(Figure, 0)
    for status, count in counts.items():
        sums[FIGURE_OF[status]] += count
    return sums


def success(counts: Mapping[Figure, int]) -> float | None:
    """Return the share of tried deliveries that the provider took; None if none was tried."""
    taken = counts[Figure.DELIVERED] + counts[Figure.SENT]
    tried = taken + counts[Figure.FAILED]
    return taken / tried if tried else None
