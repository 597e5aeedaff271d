"""Rate limits of REST calls: per organization, per second and per day.

Every call with a valid token counts once, before its view runs. Calls of TEST applications and
health checks have counters of their own, so that they do not use up the live limit. Each response
has the state of the limit in its headers (draft-ietf-httpapi-ratelimit-headers-10).
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from rme.core.redis.rate_limits import Limit, LimitDecision, limiter
from rme.tenants.oauth.authentication import Caller
from rme.tenants.organizations import OrganizationRecord

DAY = 86_400
LIMIT_REACHED = "The organization's limit of calls is reached; see Retry-After."


def take(organization: OrganizationRecord, kind: str) -> LimitDecision:
    """Count a call of a kind (`live`, `test`, `bot`, `health`); each kind has its own counters."""
    return limiter.take(_key(organization, kind), *_limits(organization))


def take_each(callers: Sequence[Caller]) -> list[LimitDecision]:
    """Count a call of each caller, as if one by one; one call to Redis."""
    keys = [_key(caller.organization, kind_of(caller)) for caller in callers]
    counts = Counter(keys)
    takes = {
        key: (_limits(caller.organization), counts[key])
        for key, caller in zip(keys, callers, strict=True)
    }
    decisions = {key: iter(decided) for key, decided in limiter.take_each(takes).items()}
    return [next(decisions[key]) for key in keys]


def kind_of(caller: Caller) -> str:
    """Return the kind of calls of a caller's mode."""
    return "test" if caller.test else "live"


def _key(organization: OrganizationRecord, kind: str) -> str:
    return f"calls:{organization.id}:{kind}"


def _limits(organization: OrganizationRecord) -> tuple[Limit, Limit]:
    return Limit(organization.calls_per_second, 1), Limit(organization.calls_per_day, DAY)


def require(decision: LimitDecision) -> None:
    """Raise RATE_LIMITED, with `Retry-After`, unless a call may pass."""
    decision.require(LIMIT_REACHED)


def headers(organization: OrganizationRecord, decision: LimitDecision) -> dict[str, str]:
    """Return the headers `RateLimit-Policy` and `RateLimit`.

    Without counters (Redis is down) the whole limit remains.
    """
    second, day = organization.calls_per_second, organization.calls_per_day
    if decision.remaining:
        remaining, resets = decision.remaining, decision.resets
        state = f'"second";r={remaining[0]};t={resets[0]}, "day";r={remaining[1]};t={resets[1]}'
    else:
        state = f'"second";r={second}, "day";r={day}'
    policy = f'"second";q={second};w=1, "day";q={day};w={DAY}'
    return {"RateLimit-Policy": policy, "RateLimit": state}


class CallThrottle(BaseThrottle):
    """Counts REST calls (REST framework's hook). A view's `counted_as` names its kind."""

    def allow_request(self, request: Request, view: Any) -> bool:
        caller = request.auth
        if not isinstance(caller, Caller):
            return True  # the API description and its page, which need no token
        kind = view.counted_as or kind_of(caller)
        decision = take(caller.organization, kind)
        view.headers.update(headers(caller.organization, decision))
        require(decision)
        return True
