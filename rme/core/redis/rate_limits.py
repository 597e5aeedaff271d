"""Rate limits that hold across processes: GCRA (the leaky bucket as a meter) in Redis.

A decision is one script call, by Redis's clock, however many limits it checks. While Redis is away
every call passes, and the log says so once; after `AWAY_SECONDS` one caller tries Redis again while
all others go on passing.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import structlog
from redis import RedisError
from redis.exceptions import NoScriptError

from rme.core import errors
from rme.core.absence import Absence
from rme.core.redis.connection import command

log = structlog.get_logger(__name__)

AWAY_SECONDS = 1.0
"""The pause after Redis could not be reached, in which no caller tries it."""

# TAT, the theoretical arrival time, is when the bucket will be empty. It is stored with the count
# that it was computed from: where the limit's count has changed since, what was used remains used,
# and a limit that was raised has room at once. A TAT farther away than the largest debt is cut,
# which repairs it when the clock was set back. Numbers are stored as doubles: as text Lua would
# round them to 0.1 ms.
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
# ARGV: how many limits each key has; then for each key its cost, how often it is taken, and the
# limits. Repeated takes are decided one after the other.
_GCRA = """
local function read(from, many, place)
  local limits = {}
  for i = 1, many do
    local count, largest = tonumber(ARGV[place + 3 * i - 2]), tonumber(ARGV[place + 3 * i - 1])
    local rate = math.max(count, 1)
    local interval = tonumber(ARGV[place + 3 * i - 3]) / rate
    local full = interval * count
    local tat = arrival(KEYS[from + i], rate)
    tat = math.min(math.max(tat, now), now + math.max(full, interval * largest))
    limits[i] = {tat, interval, rate, full, count, largest}
  end
  return limits
end
local function take(limits, cost)
  local wait = 0
  for _, limit in ipairs(limits) do
    local tat, interval, _, full, count, largest = unpack(limit)
    local needed = math.max(cost, 1)
    if needed > count and needed <= largest then needed = count end
    local missing = tat + interval * needed - now - full
    if missing > interval * 1e-6 then wait = math.max(wait, missing) end
  end
  if wait > 0 then return math.max(math.ceil(wait - 1e-6), 1) end
  for _, limit in ipairs(limits) do limit[1] = limit[1] + limit[2] * cost end
  return 0
end
local many, answer = tonumber(ARGV[1]), {}
for group = 0, #KEYS / many - 1 do
  local place = 2 + group * (3 * many + 2)
  local cost, taken = tonumber(ARGV[place]), false
  local limits = read(group * many, many, place + 2)
  for _ = 1, tonumber(ARGV[place + 1]) do
    local wait = take(limits, cost)
    taken = taken or wait == 0
    answer[#answer + 1] = wait
    for _, limit in ipairs(limits) do
      local tat, interval, _, full = unpack(limit)
      answer[#answer + 1] = math.max(0, math.floor((now + full - tat) / interval + 1e-6))
      answer[#answer + 1] = math.ceil(tat - now - 1e-6)
    end
  end
  for i, limit in ipairs(limits) do
    if taken and cost > 0 then keep(KEYS[group * many + i], limit[1], limit[3]) end
  end
end
return answer
"""


class Script:
    """A script for `Limiter.run`, which Redis knows by its digest."""

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
_RESET = Script("redis.call('DEL', unpack(KEYS)) return {}")

# Takes as much of the bucket as is there. The wait for the next one is in milliseconds.
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
    """How many of those wanted may pass now, and the seconds until one more may."""

    count: int
    wait: float


@dataclass(frozen=True, slots=True)
class Limit:
    """`count` in `seconds`; they may all come at once. With a count of 0 nothing passes.

    One call that costs more than `count`, up to `largest`, passes when the limit is unused, and
    later calls wait until the rate has made up for it.
    """

    count: int
    seconds: int
    largest: int = 0


@dataclass(frozen=True, slots=True)
class LimitDecision:
    """Whether a call may pass. `retry_after` is in whole seconds, at least 1 where it may not.

    For each limit, in order: how many may still come at once (`remaining`), and the seconds until
    it is unused again (`resets`). Both are empty while Redis is away, as nothing is counted.
    """

    allowed: bool
    retry_after: int = 0
    remaining: tuple[int, ...] = ()
    resets: tuple[int, ...] = ()

    @property
    def is_counted(self) -> bool:
        """Return whether Redis decided. While it is away, nothing counts and all calls pass."""
        return not self.allowed or bool(self.remaining)

    def require(self, message: str | None = None) -> None:
        """Raise RATE_LIMITED, with `Retry-After`, unless the call may pass."""
        if not self.allowed:
            raise errors.RateLimited(message, headers={"Retry-After": str(self.retry_after)})


class Limiter:
    """Checks calls against limits, and lets all pass while Redis is away."""

    def __init__(self) -> None:
        self._absence = Absence(AWAY_SECONDS)

    def take(self, key: str, *limits: Limit, cost: int = 1) -> LimitDecision:
        """Count a call against all of the limits, or none if one refuses it.

        No two limits may have the same `seconds`. With cost 0 nothing is counted: the decision is
        the one that a call would get.
        """
        (decision,) = self.take_each({key: (limits, 1)}, cost=cost)[key]
        return decision

    def take_each(
        self, takes: Mapping[str, tuple[Sequence[Limit], int]], *, cost: int = 1
    ) -> dict[str, list[LimitDecision]]:
        """Count calls as `take` does, one by one, and return the decision of each.

        `takes` are the limits of each key, as many for each, and how many calls there are. One
        call to Redis, however many they are.
        """
        if not takes:
            return {}
        keys, numbers = [], []
        for key, (limits, times) in takes.items():
            limit_keys, bounds = self._key_arguments(key, limits)
            keys += limit_keys
            numbers += [cost, times, *bounds]
        keys_per_take = len(keys) // len(takes)
        answer = self.run(_TAKE, keys, keys_per_take, *numbers)
        if answer is None:
            return {key: [LimitDecision(allowed=True)] * times for key, (_, times) in takes.items()}
        size = 1 + 2 * keys_per_take
        decisions = (
            LimitDecision(wait == 0, wait, tuple(states[::2]), tuple(states[1::2]))
            for wait, *states in (answer[at : at + size] for at in range(0, len(answer), size))
        )
        return {key: list(islice(decisions, times)) for key, (_, times) in takes.items()}

    def grant(self, requests: Mapping[str, tuple[Limit, int]], *, take: bool = True) -> list[Grant]:
        """Count, for each limit, as many of those wanted as it allows now; in the same order.

        One call to Redis. Without `take` nothing is counted. While Redis is away all are granted.
        """
        keys = [f"rme:bucket:{key}:{limit.seconds}" for key, (limit, _) in requests.items()]
        numbers = [
            number
            for limit, count in requests.values()
            for number in (limit.seconds, max(limit.count, 1), count, int(take))
        ]
        answer = self.run(_GRANT, keys, *numbers) if keys else []
        if answer is None:
            return [Grant(count, 0.0) for _, count in requests.values()]
        pairs = zip(answer[::2], answer[1::2], strict=True)
        return [Grant(granted, milliseconds / 1000) for granted, milliseconds in pairs]

    def give_back(self, key: str, *limits: Limit) -> None:
        """Undo the count of one call that the limits are not meant for."""
        keys, numbers = self._key_arguments(key, limits)
        self.run(_GIVE_BACK, keys, *numbers)

    def reset(self, key: str, *limits: Limit) -> None:
        """Reset the counts of the limits."""
        self.run(_RESET, self._key_arguments(key, limits)[0])

    @staticmethod
    def _key_arguments(key: str, limits: Sequence[Limit]) -> tuple[list[str], list[int]]:
        keys = [f"rme:bucket:{key}:{limit.seconds}" for limit in limits]
        return keys, [n for limit in limits for n in (limit.seconds, limit.count, limit.largest)]

    def run(self, script: Script, keys: Sequence[str], *arguments: float) -> list[int] | None:
        """Run a script in one call and return its answer; None while Redis is away."""
        if not self._absence.may_try():
            return None
        try:
            answer = _run(script, len(keys), *keys, *arguments)
        except RedisError as error:
            if self._absence.note_failure():
                log.warning("limits.open", error=type(error).__name__)
            return None
        if self._absence.note_answer():
            log.info("limits.back")
        return answer

    @property
    def away(self) -> bool:
        """Return whether Redis did not answer lately, so that no limit holds (for health)."""
        return self._absence.is_noted


def _run(script: Script, *arguments: str | float) -> list[int]:
    try:
        answer: list[int] = command("EVALSHA", script.sha, *arguments)
    except NoScriptError:
        answer = command("EVAL", script.text, *arguments)
    return answer


limiter = Limiter()
