"""Rate limits that hold across processes: GCRA (the leaky bucket as a meter) in Redis.

One script call a decision, by Redis's own clock. Redis is never needed: when it is away every
call passes, the log says so, and for a second nobody asks it again; then one caller tries, while
all others go on passing.
"""

import math
import threading
import time
from dataclasses import dataclass

import structlog
from django.conf import settings
from django.http import HttpRequest
from redis import RedisError

from rme.core import bell

log = structlog.get_logger(__name__)

AWAY_SECONDS = 1.0
"""How long Redis is left alone after it did not answer."""

# TAT, the theoretical arrival time, is when the bucket will have run empty. It is never believed
# to be farther away than a full bucket, so that a limit that was raised and a clock that was set
# back are both felt at once. Microseconds are written out: Lua would round to 0.1 ms.
_GCRA = """
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1e6
local interval = tonumber(ARGV[1])
local full = interval * tonumber(ARGV[2])
local cost = tonumber(ARGV[3])
local tat = tonumber(redis.call('GET', KEYS[1]) or now)
tat = math.min(math.max(tat, now), now + full)
local asked = tat + interval * math.max(cost, 1)
local wait = asked - now - full
if wait > interval * 1e-6 then return {0, string.format('%.6f', wait)} end
local new = tat + interval * cost
if cost > 0 then
  local life = math.ceil((new - now) * 1000) + 1
  redis.call('SET', KEYS[1], string.format('%.6f', new), 'PX', life)
end
return {1, tostring(math.floor((now + full - new) / interval + 1e-6))}
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
        self._lock = threading.Lock()

    def take(self, key: str, limit: Limit, *, cost: int = 1) -> Decision:
        """Count a call against a limit, if it passes. With cost 0 only look whether one would.

        A cost above the limit's count never passes.
        """
        if not self._may_ask():
            return Decision(allowed=True)
        try:
            script = bell.client().register_script(_GCRA)
            allowed, value = script(
                keys=[f"rme:limit:{key}"],
                args=[limit.seconds / limit.count, limit.count, cost],
            )
        except RedisError as error:
            self._away_until = time.monotonic() + AWAY_SECONDS
            log.warning("limits.open", error=type(error).__name__)
            return Decision(allowed=True)
        self._away_until = 0.0
        if allowed:
            return Decision(allowed=True, remaining=int(value))
        return Decision(allowed=False, retry_after=max(1, math.ceil(float(value))))

    @property
    def away(self) -> bool:
        """Say whether Redis did not answer lately, so that limits do not hold (for health)."""
        return self._away_until > 0.0

    def _may_ask(self) -> bool:
        """Say whether this call may ask Redis; after a failure one call at a time finds out."""
        if self._away_until == 0.0:
            return True
        with self._lock:
            now = time.monotonic()
            if now < self._away_until:
                return False
            self._away_until = now + AWAY_SECONDS
            return True


limiter = Limiter()


def address_of(request: HttpRequest) -> str:
    """Give the address that a request came from, which limits count by.

    Behind our own proxy it is the last of X-Forwarded-For, which that proxy wrote itself; what
    stands before it anybody may have written.
    """
    direct = str(request.META.get("REMOTE_ADDR", ""))
    if not settings.TLS_PROXY:
        return direct
    return request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()[:64] or direct
