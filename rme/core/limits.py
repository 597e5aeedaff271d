"""Rate limits that hold across processes: GCRA (the leaky bucket as a meter) in Redis.

One script call a decision, by Redis's own clock. Redis is never needed: when it is away every
call passes, the log says so, and it is not asked again for a second.
"""

import math
import time
from dataclasses import dataclass

import structlog
from redis import RedisError

from rme.core import bell

log = structlog.get_logger(__name__)

_GCRA = """
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1e6
local interval = tonumber(ARGV[1])
local burst = tonumber(ARGV[2])
local cost = tonumber(ARGV[3])
local tat = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now)
local new = tat + interval * cost
local wait = new - now - interval * burst
if wait > 0 then return {0, tostring(wait)} end
if cost > 0 then redis.call('SET', KEYS[1], tostring(new), 'PX', math.ceil((new - now) * 1000) + 1) end
return {1, tostring(math.floor((now + interval * burst - new) / interval))}
"""


@dataclass(frozen=True, slots=True)
class Limit:
    """So many in so many seconds; all of them may come at once."""

    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a call may pass. `retry_after` is in whole seconds, at least 1 where it may not."""

    allowed: bool
    retry_after: int = 0
    remaining: int = 0


class Limiter:
    """Decide calls against limits."""

    def __init__(self) -> None:
        self._away_until = 0.0

    def take(self, key: str, limit: Limit, *, cost: int = 1) -> Decision:
        """Count a call against a limit, if it passes. With cost 0 only look."""
        if time.monotonic() < self._away_until:
            return Decision(allowed=True)
        try:
            script = bell.client().register_script(_GCRA)
            allowed, value = script(
                keys=[f"rme:limit:{key}"],
                args=[limit.seconds / limit.count, limit.count, cost],
            )
        except RedisError as error:
            self._away_until = time.monotonic() + 1.0
            log.warning("limits.open", error=type(error).__name__)
            return Decision(allowed=True)
        if allowed:
            return Decision(allowed=True, remaining=int(float(value)))
        return Decision(allowed=False, retry_after=max(1, math.ceil(float(value))))


limiter = Limiter()
