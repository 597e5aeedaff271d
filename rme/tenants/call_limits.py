"""How often an organization may call: so many a second, so many a day.

Every call with a valid token counts, once, before it is looked at. What TEST applications call and
calls for health count apart, so that neither uses up what the organization works with. Each
answer says where the organization stands (draft-ietf-httpapi-ratelimit-headers-10).
"""

from typing import Any

from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from rme.core.redis.rate_limits import Limit, LimitDecision, limiter
from rme.tenants.organizations import OrganizationRecord

DAY = 86_400
LIMIT_REACHED = "The organization's limit of calls is reached; see Retry-After."


def take(organization: OrganizationRecord, kind: str) -> LimitDecision:
    """Count a call of a kind (`live`, `test`, `health`), each with limits of its own."""
    return limiter.take(
        f"calls:{organization.id}:{kind}",
        Limit(organization.calls_per_second, 1),
        Limit(organization.calls_per_day, DAY),
    )


def headers(organization: OrganizationRecord, decision: LimitDecision) -> dict[str, str]:
    """Give `RateLimit-Policy` and `RateLimit`; all that is allowed remains where nobody counts."""
    second, day = organization.calls_per_second, organization.calls_per_day
    if decision.remaining:
        left, resets = decision.remaining, decision.resets
        standing = f'"second";r={left[0]};t={resets[0]}, "day";r={left[1]};t={resets[1]}'
    else:
        standing = f'"second";r={second}, "day";r={day}'
    policy = f'"second";q={second};w=1, "day";q={day};w={DAY}'
    return {"RateLimit-Policy": policy, "RateLimit": standing}


class CallThrottle(BaseThrottle):
    """Count REST calls (REST framework's hook). `counted_as` of a view is a kind of its own."""

    def allow_request(self, request: Request, view: Any) -> bool:
        caller: Any = request.auth
        if caller is None:
            return True  # the description and its page, which need no token
        kind = view.counted_as or ("test" if caller.test else "live")
        decision = take(caller.organization, kind)
        view.headers.update(headers(caller.organization, decision))
        decision.require(LIMIT_REACHED)
        return True
