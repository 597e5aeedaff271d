"""Rate limits that hold across processes: GCRA (the leaky bucket as a meter) in Redis.

One script call a decision, by Redis's own clock, however many limits it is held against. Redis is
never needed: when it is away every call passes, the log says so once, and for a second nobody
asks it again; then one caller tries, while all others go on passing.
"""

import hashlib
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog
from django.http import HttpRequest
from redis import RedisError
from redis.exceptions import NoScriptError

from rme.core import errors
from rme.core.http import proxies
from rme.core.redis import redis_client

log = structlog.get_logger(__name__)

AWAY_SECONDS = 1.0
"""How long Redis is left alone after it did not answer."""

# TAT, the theoretical arrival time, is when the bucket will have run empty. It is kept with the
# count that it was reckoned with: when that was changed, as much as before has been used, so that a
# limit that was raised has room at once. It is never believed to be farther away than what may be
# owed, so that a clock that was set back is felt at once. Numbers are kept as they are: as text Lua
# would round them to 0.1 ms.
_BUCKET = """
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1e6
local function arrival(key, count)
  local kept = redis.call('GET', key)
  if not kept then return now end
  local tat, before = struct.unpack('dd', kept)
  if before ~= count then tat = now + (tat - now) * before / count end
  return tat
end
local function keep(key, tat, count)
  local life = math.ceil((tat - now) * 1000) + 1
  redis.call('SET', key, struct.pack('dd', tat, count), 'PX', life)
end
"""
_GCRA = """
local cost = tonumber(ARGV[1])
local wait, limits = 0, {}
for i, key in ipairs(KEYS) do
  local count, largest = tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1])
  local rate = math.max(count, 1)
  local interval = tonumber(ARGV[3 * i - 1]) / rate
  local full = interval * count
  local tat = arrival(key, rate)
  tat = math.min(math.max(tat, now), now + math.max(full, interval * largest))
  local asked = math.max(cost, 1)
  if asked > count and asked <= largest then asked = count end
  local missing = tat + interval * asked - now - full
  if missing > interval * 1e-6 then wait = math.max(wait, missing) end
  limits[i] = {tat, interval, rate, full}
end
local answer = {math.ceil(wait - 1e-6)}
if wait > 0 then
  answer[1] = math.max(answer[1], 1)
  cost = 0
end
for i, key in ipairs(KEYS) do
  local tat, interval, rate, full = unpack(limits[i])
  local new = tat + interval * cost
  if cost > 0 then keep(key, new, rate) end
  answer[2 * i] = math.max(0, math.floor((now + full - new) / interval + 1e-6))
  answer[2 * i + 1] = math.ceil(new - now - 1e-6)
end
return answer
"""


class Script:
    """A script for `Limiter.run`, known to Redis by its digest."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


_TAKE = Script(_BUCKET + _GCRA)


_GIVE_BACK = Script(
    _BUCKET
    + """
for i, key in ipairs(KEYS) do
  local seconds, count = tonumber(ARGV[3 * i - 2]), math.max(tonumber(ARGV[3 * i - 1]), 1)
  local tat = arrival(key, count) - seconds / count
  if tat > now then keep(key, tat, count) else redis.call('DEL', key) end
end
return {}
"""
)
_FORGET = Script("redis.call('DEL', unpack(KEYS)) return {}")

# The same bucket, of which as much is taken as is there. The wait, for the next one, is in ms.
_GRANT = Script(
    _BUCKET
    + """
local answer = {}
for i, key in ipairs(KEYS) do
  local seconds, count = tonumber(ARGV[4 * i - 3]), tonumber(ARGV[4 * i - 2])
  local wanted, take = tonumber(ARGV[4 * i - 1]), ARGV[4 * i] == '1'
  local interval = seconds / count
  local tat = math.min(math.max(arrival(key, count), now), now + seconds)
  local granted = math.min(wanted, math.floor((now + seconds - tat) / interval + 1e-6))
  if take and granted > 0 then
    tat = tat + interval * granted
    keep(key, tat, count)
  end
  answer[2 * i - 1] = granted
  answer[2 * i] = math.max(0, math.ceil((tat + interval - seconds - now) * 1000 - 1e-3))
end
return answer
"""
)


@dataclass(frozen=True, slots=True)
class Grant:
    """How many of those wanted may come now, and the seconds until one more may."""

    count: int
    wait: float


@dataclass(frozen=True, slots=True)
class Limit:
    """So many in so many seconds; all of them may come at once. A count of 0 lets nothing pass.

    One call of more than `count`, up to `largest`, passes when nothing was counted lately, and
    what comes after it waits until it has been paid for: the rate holds over time.
    """

    count: int
    seconds: int
    largest: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a call may pass. `retry_after` is in whole seconds, at least 1 where it may not.

    For each limit, in their order: how many may still come at once, and the seconds until it is
    as if nothing had been counted. Both are empty when Redis is away: nobody counts then.
    """

    allowed: bool
    retry_after: int = 0
    remaining: tuple[int, ...] = ()
    resets: tuple[int, ...] = ()

    def require(self, message: str | None = None) -> None:
        """Let pass what may pass. Raises RATE_LIMITED, with `Retry-After`."""
        if not self.allowed:
            raise errors.RateLimited(message, headers={"Retry-After": str(self.retry_after)})


class Limiter:
    """Decide calls against limits."""

    def __init__(self) -> None:
        self._away_until = 0.0
        self._lock = threading.Lock()

    def take(self, key: str, *limits: Limit, cost: int = 1) -> Decision:
        """Count a call against limits of different seconds: against all of them, or none.

        With cost 0 only look whether a call would pass.
        """
        keys, numbers = self._buckets(key, limits)
        answer = self.run(_TAKE, keys, cost, *numbers)
        if answer is None:
            return Decision(allowed=True)
        retry_after, *standing = answer
        return Decision(retry_after == 0, retry_after, tuple(standing[::2]), tuple(standing[1::2]))

    def grant(self, wanted: Mapping[str, tuple[Limit, int]], *, take: bool = True) -> list[Grant]:
        """Give of each limit as many as are wanted and there, by one call, in the same order.

        Without `take` only look. When Redis is away, all are given.
        """
        keys = [f"rme:bucket:{key}:{limit.seconds}" for key, (limit, _) in wanted.items()]
        numbers = [
            number
            for limit, count in wanted.values()
            for number in (limit.seconds, max(limit.count, 1), count, int(take))
        ]
        answer = self.run(_GRANT, keys, *numbers) if keys else []
        if answer is None:
            return [Grant(count, 0.0) for _, count in wanted.values()]
        pairs = zip(answer[::2], answer[1::2], strict=True)
        return [Grant(granted, milliseconds / 1000) for granted, milliseconds in pairs]

    def give_back(self, key: str, *limits: Limit) -> None:
        """Take back one call that was counted against limits: it was none of those meant."""
        keys, numbers = self._buckets(key, limits)
        self.run(_GIVE_BACK, keys, *numbers)

    def forget(self, key: str, *limits: Limit) -> None:
        """Count from nothing again."""
        self.run(_FORGET, self._buckets(key, limits)[0])

    @staticmethod
    def _buckets(key: str, limits: Sequence[Limit]) -> tuple[list[str], list[int]]:
        keys = [f"rme:bucket:{key}:{limit.seconds}" for limit in limits]
        return keys, [n for limit in limits for n in (limit.seconds, limit.count, limit.largest)]

    def run(self, script: Script, keys: Sequence[str], *arguments: float) -> list[int] | None:
        """Run a script of the same kind: one call, and None where Redis is away."""
        if not self._may_ask():
            return None
        try:
            answer = _run(script, len(keys), *keys, *arguments)
        except RedisError as error:
            self._lost(error)
            return None
        if self._away_until:
            self._away_until = 0.0
            log.info("limits.back")
        return answer

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

    def _lost(self, error: RedisError) -> None:
        with self._lock:
            first = self._away_until == 0.0
            self._away_until = time.monotonic() + AWAY_SECONDS
        if first:
            log.warning("limits.open", error=type(error).__name__)


def _run(script: Script, *arguments: str | float) -> list[int]:
    try:
        answer: list[int] = redis_client.ask("EVALSHA", script.sha, *arguments)
    except NoScriptError:
        answer = redis_client.ask("EVAL", script.text, *arguments)
    return answer


limiter = Limiter()


def address_of(request: HttpRequest) -> str:
    """Return the address that a request came from, which limits count by."""
    return proxies.address(request.META)
