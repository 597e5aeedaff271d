"""Unknown outcomes for which no receipt came: send again, or leave to manual review."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from messaging.domain.channels import Channel
from messaging.domain.deliveries import DueDelivery
from messaging.domain.policy import CategoryRules


class UnknownAttempts(NamedTuple):
    """How often a delivery was sent with an unknown outcome, and when last."""

    times: int
    last: datetime


def resend_at(
    delivery: DueDelivery,
    sent: UnknownAttempts,
    rules: CategoryRules,
    *,
    receipt_seconds: float,
    backoff_seconds: Sequence[float],
) -> datetime | None:
    """Return when a delivery is sent again; None: it waits for manual review.

    `receipt_seconds` is how long a receipt is awaited, and `backoff_seconds` how much longer before
    each resend: after as many resends, a person decides.
    """
    may_resend = rules.resend_unknown or delivery.channel == Channel.PUSH
    if not may_resend or sent.times > len(backoff_seconds):
        return None
    backoff = backoff_seconds[sent.times - 1]
    if not backoff:
        return delivery.now
    return sent.last + timedelta(seconds=receipt_seconds + backoff)
