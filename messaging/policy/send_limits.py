"""An organization's ceilings on accepted messages, per second and per day.

Messages count when they are accepted, all of a call or none. What TEST applications send does not
count.
"""

from messaging.domain.policy import SendingRulesRecord
from rme.core import errors
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
    return limiter.take(_key(organization_id), *_limits(sending, LARGEST), cost=count)


def take_each(
    organization_id: str, sending: SendingRulesRecord, count: int
) -> list[errors.RateLimited | None]:
    """Count messages one by one; return for each the error if it exceeds a ceiling.

    One call to Redis, as long as every limit is below its ceiling.
    """
    key = _key(organization_id)
    # As a whole they must not exceed what single messages may, unlike a bulk.
    if count > 1 and limiter.take(key, *_limits(sending), cost=count).allowed:
        return [None] * count
    refusals: list[errors.RateLimited | None] = []
    while len(refusals) < count:
        decision = limiter.take(key, *_limits(sending, LARGEST))
        if not decision.allowed:  # nor are those that follow
            return refusals + [_error(decision) for _ in range(count - len(refusals))]
        refusals.append(None)
    return refusals


def _error(decision: LimitDecision) -> errors.RateLimited:
    return errors.RateLimited(CEILING_REACHED, headers={"Retry-After": str(decision.retry_after)})


def _key(organization_id: str) -> str:
    return f"sends:{organization_id}"


def _limits(sending: SendingRulesRecord, largest: int = 0) -> list[Limit]:
    limits = [Limit(sending.sends_per_day, DAY)]
    if sending.sends_per_second is not None:
        limits.append(Limit(sending.sends_per_second, 1, largest=largest))
    return limits


def require(
    organization_id: str, sending: SendingRulesRecord, count: int, *, test: bool = False
) -> None:
    """Count messages. Raises RATE_LIMITED, with `Retry-After`, when they exceed a ceiling."""
    take(organization_id, sending, count, test=test).require(CEILING_REACHED)
