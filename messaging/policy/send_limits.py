"""An organization's ceilings on accepted messages, per second and per day.

Messages count when they are accepted, all of a call or none. What TEST applications send does not
count.
"""

from messaging.policy.organization_policy import SendingRulesRecord
from rme.core.redis.rate_limits import Limit, LimitDecision, limiter

DAY = 86_400
LARGEST = 500
"""The number of messages that a bulk may have. A bulk that is larger than the ceiling of a second
passes when nothing was accepted lately, and delays what follows; otherwise it never could.
"""
CEILING_REACHED = "The organization's ceiling of messages is reached; see Retry-After."


def take(
    organization_id: str, sending: SendingRulesRecord, count: int, *, test: bool = False
) -> LimitDecision:
    """Count messages against an organization's ceilings: all of them, or none."""
    if test or count == 0:
        return LimitDecision(allowed=True)
    limits = [Limit(sending.sends_per_day, DAY)]
    if sending.sends_per_second is not None:
        limits.append(Limit(sending.sends_per_second, 1, largest=LARGEST))
    return limiter.take(f"sends:{organization_id}", *limits, cost=count)


def require(
    organization_id: str, sending: SendingRulesRecord, count: int, *, test: bool = False
) -> None:
    """Count messages. Raises RATE_LIMITED, with `Retry-After`, when they exceed a ceiling."""
    take(organization_id, sending, count, test=test).require(CEILING_REACHED)
