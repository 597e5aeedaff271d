"""The health of provider accounts, in Redis, so that all processes see the same.

| state | means | how it is left |
|---|---|---|
| CLOSED | the account has its turn | half of 20 sends in 60 s fail, or it refuses us: OPEN |
| OPEN | others go first | after 30 s: HALF_OPEN |
| HALF_OPEN | a few sends try it | five were answered: CLOSED; one failed: OPEN |

A failure is what speaks against the provider: Misconfigured, Unknown, and Retryable unless it says
that the account is well. What it refuses for the recipient or the content it has answered. Where a
provider says how long to leave it alone, it goes last for that time, whatever its circuit. A
circuit puts an account last and never takes it away: when all are open, they are tried all the
same. Redis is never needed: without it, all circuits are closed.

While all is well nobody asks again and again: what a process heard of a closed circuit it believes
for a moment, and tells what was answered since then with the next report. A failure is told at
once.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from django.conf import settings

from rme.core.cache import TtlCache
from rme.core.outcomes import Accepted, Misconfigured, Outcome, Retryable, Unknown
from rme.core.redis.rate_limits import Script, limiter

PROBES = 5
"""So many sends try an account at a time while it is half open, and so many answers close it."""
PROBE_SECONDS = 5
"""After so long without an answer, another few try."""
REST_LIMIT = 15 * 60.0
"""A provider's own wish to be left alone is honoured this far."""

# A period is counted in ten parts, each a field of the account's hash: g and b for good and bad.
_SCRIPT = Script("""
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1e6
local period, sends, share = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local rest, probes, patience = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local part = math.floor(now / (period / 10))
local answer = {}
for i, key in ipairs(KEYS) do
  local good, bad = tonumber(ARGV[5 * i + 2]), tonumber(ARGV[5 * i + 3])
  local broken, wish = tonumber(ARGV[5 * i + 4]), tonumber(ARGV[5 * i + 5])
  local try = ARGV[5 * i + 6] == '1'
  local flat, known = redis.call('HGETALL', key), {}
  for j = 1, #flat, 2 do known[flat[j]] = flat[j + 1] end
  local state = 'CLOSED'
  if known['until'] then state = now < tonumber(known['until']) and 'OPEN' or 'HALF_OPEN' end
  local resting = math.max(tonumber(known['rest'] or 0), wish > 0 and now + wish or 0)
  local fails = false
  if state == 'CLOSED' and good + bad > 0 then
    local all, failed = good + bad, bad
    for name, count in pairs(known) do
      local kind, at = string.sub(name, 1, 1), tonumber(string.sub(name, 2))
      if at and at <= part - 10 then
        redis.call('HDEL', key, name)
      elseif at then
        all = all + count
        if kind == 'b' then failed = failed + count end
      end
    end
    fails = (all >= sends and failed >= share * all and bad > 0) or broken > 0
    if good > 0 then redis.call('HINCRBY', key, 'g' .. part, good) end
    if bad > 0 then redis.call('HINCRBY', key, 'b' .. part, bad) end
  elseif state == 'HALF_OPEN' and good + bad > 0 then
    fails = bad > 0
    if not fails then
      redis.call('HDEL', key, 'probed')
      if redis.call('HINCRBY', key, 'answers', good) >= probes then
        redis.call('DEL', key)
        state = 'CLOSED'
      end
    end
  end
  if fails then
    redis.call('DEL', key)
    redis.call('HSET', key, 'until', string.format('%.3f', now + rest))
    state = 'OPEN'
  end
  if resting > now then redis.call('HSET', key, 'rest', string.format('%.3f', resting)) end
  local allowed = 0
  if state == 'HALF_OPEN' and try and now >= tonumber(known['probed'] or 0) then
    redis.call('HSET', key, 'probed', string.format('%.3f', now + patience))
    allowed = probes
  end
  if good + bad > 0 or wish > 0 then
    redis.call('EXPIRE', key, math.ceil(math.max(period, 20 * rest, resting - now)) + 1)
  end
  answer[3 * i - 2] = state == 'CLOSED' and 0 or (state == 'OPEN' and 1 or 2)
  answer[3 * i - 1] = allowed
  answer[3 * i] = resting > now and 1 or 0
end
return answer
""")


class State(StrEnum):
    """A circuit's state, as health shows it."""

    CLOSED = "CLOSED"
    OPEN = "OPEN"
    HALF_OPEN = "HALF_OPEN"


_STATES = tuple(State)


@dataclass(slots=True)
class Tally:
    """What a window of sends came to, for one account."""

    good: int = 0
    bad: int = 0
    broken: int = 0
    wish: float = 0.0
    """The longest time, in seconds, for which the provider wants to be left alone."""

    @property
    def speaks_against(self) -> bool:
        """Say whether there is anything that others should know at once."""
        return bool(self.bad or self.wish)

    def count(self, outcome: Outcome) -> None:
        """Add one send."""
        if isinstance(outcome, Accepted):
            self.good += 1
            return
        if isinstance(outcome, Retryable) and not outcome.blames_account:
            return
        failed = isinstance(outcome, Retryable | Misconfigured | Unknown)
        self.good += not failed
        self.bad += failed
        self.broken += isinstance(outcome, Misconfigured)
        if isinstance(outcome, Retryable):
            self.wish = max(self.wish, _honoured(outcome.retry_after))


def _honoured(seconds: float | None) -> float:
    """Read a wish: whatever a provider says is a time between none and the limit."""
    if seconds is None or not math.isfinite(seconds):
        return 0.0
    return min(max(seconds, 0.0), REST_LIMIT)


@dataclass(slots=True)
class Standing:
    """Which accounts go last now, by their ids."""

    last: frozenset[int] = frozenset()
    probes: dict[int, int] = field(default_factory=dict)
    """How many sends may still try an account whose circuit is half open."""

    def goes_last(self, account_id: int | None) -> bool:
        """Say whether others go before an account."""
        return account_id in self.last and not self.probes.get(account_id or 0)

    def chosen(self, account_id: int | None) -> None:
        """Take note that a send will try an account first."""
        if account_id in self.probes:
            self.probes[account_id] = max(0, self.probes[account_id] - 1)


ALL_WELL = Standing()


_well: TtlCache[int, bool] = TtlCache(seconds=0.2)
"""The accounts whose circuits were closed a moment ago: that long it is believed."""
_broken: TtlCache[int, bool] = TtlCache(seconds=0.2)
"""Whether an account's circuit was other than closed, as this process heard a moment ago."""
_untold: TtlCache[int, Tally] = TtlCache(seconds=1)
"""What they have answered since then. Later it says nothing of today any more."""


def _known_well(account_ids: Collection[int]) -> bool:
    return all(_well.get(each, lambda: None) for each in account_ids)


def look(account_ids: Collection[int], *, probing: bool = True) -> Standing:
    """Ask which accounts go last, and which of those a few sends may try; one call to Redis.

    Who does not send at once asks without `probing`: else nobody would try.
    """
    if _known_well(account_ids):
        return Standing()
    return _exchange({each: Tally() for each in account_ids}, try_again=probing)[0]


def states(account_ids: Collection[int]) -> dict[int, State]:
    """Give the state of each circuit (for health); one call to Redis."""
    return _exchange({each: Tally() for each in account_ids})[1]


def broken(account_ids: Collection[int]) -> frozenset[int]:
    """Return the accounts whose circuits are not closed; at most one call to Redis."""
    doubtful = [each for each in account_ids if not _known_well([each])]
    if unknown := [each for each in doubtful if _broken.get(each, lambda: None) is None]:
        states(unknown)
    return frozenset(each for each in doubtful if _broken.get(each, lambda: None))


def report(sends: Iterable[tuple[int | None, Outcome]], *, rest: float = 0.0) -> Standing:
    """Tell what became of sends, by account, and hear which go last now; one call to Redis.

    An account of which a send failed goes last for `rest` seconds.
    """
    tallies: defaultdict[int, Tally] = defaultdict(Tally)
    for account_id, outcome in sends:
        if account_id is not None:  # nobody's simulator has no circuit
            tallies[account_id].count(outcome)
    for tally in tallies.values():
        tally.wish = max(tally.wish, rest if tally.bad else 0.0)
    if _known_well(tallies) and not any(tally.speaks_against for tally in tallies.values()):
        for account_id, tally in tallies.items():
            if before := _untold.get(account_id, lambda: None):
                before.good += tally.good
            else:
                _untold.put(account_id, tally)
        return Standing()
    return _exchange(tallies)[0]


def _exchange(
    tallies: Mapping[int, Tally], *, try_again: bool = False
) -> tuple[Standing, dict[int, State]]:
    if not tallies:
        return Standing(), {}
    for account_id, tally in tallies.items():
        if tally.good:  # it takes others just now: its settings are not all wrong
            tally.broken = 0
        before = _untold.get(account_id, lambda: None)
        tally.good += before.good if before else 0
        _untold.forget(account_id)
        _well.forget(account_id)
    keys = [f"rme:circuit:{account_id}" for account_id in tallies]
    numbers = [
        number
        for tally in tallies.values()
        for number in (tally.good, tally.bad, tally.broken, tally.wish, int(try_again))
    ]
    answer = limiter.run(
        _SCRIPT,
        keys,
        settings.CIRCUIT_SECONDS,
        settings.CIRCUIT_SENDS,
        settings.CIRCUIT_FAILURES,
        settings.CIRCUIT_OPEN_SECONDS,
        PROBES,
        PROBE_SECONDS,
        *numbers,
    )
    if answer is None:
        return Standing(), dict.fromkeys(tallies, State.CLOSED)
    found = dict(
        zip(tallies, zip(answer[::3], answer[1::3], answer[2::3], strict=True), strict=True)
    )
    for account_id, told in found.items():
        _broken.put(account_id, bool(told[0]))
        if told == (0, 0, 0):
            _well.put(account_id, True)
    standing = Standing(
        frozenset(each for each, (state, _, rests) in found.items() if state or rests),
        {each: allowed for each, (_, allowed, rests) in found.items() if allowed and not rests},
    )
    return standing, {each: _STATES[state] for each, (state, _, _) in found.items()}
