"""The circuit breakers of provider accounts, in Redis, so that all processes see the same.

| state | means | how it is left |
|---|---|---|
| CLOSED | it is tried in its order | half of 20 sends in 60 s fail, or it refuses us: OPEN |
| OPEN | other accounts are tried first | after 30 s: HALF_OPEN |
| HALF_OPEN | a few sends probe it | five were answered: CLOSED; one failed: OPEN |

A failure is an outcome that is the provider's fault: Misconfigured, Unknown, and Retryable unless
it does not blame the account. A refusal of the recipient or the content is an answer. Where a
provider asks for no sends for some time (retry-after), the account is tried last for that time,
whatever the state of its circuit. A circuit never removes an account: when all are open, they are
tried all the same. Redis is never needed: without it, all circuits are closed.

While all is well, no process asks Redis again and again: it trusts a closed circuit for a moment,
and reports the answers since then with its next report. A failure is reported at once.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from django.conf import settings

from messaging.domain.accounts.admission import CircuitState
from messaging.models import CircuitChange
from rme.core.cache import TtlCache
from rme.core.outcomes import Accepted, Misconfigured, Outcome, Retryable, Unknown
from rme.core.redis.rate_limits import Script, limiter

PROBES = 5
"""How many sends probe a half-open account at a time, and how many answers close its circuit."""
PROBE_ANSWER_SECONDS = 5
"""The seconds without an answer after which other sends probe."""
CIRCUIT_MEMORY = 20
"""A circuit that no send has probed for so many times its open time is forgotten."""
RETRY_AFTER_LIMIT = 15 * 60.0
"""A provider's retry-after counts as no longer than this."""

# A period is counted in ten parts, each a field of the account's hash: g for answered sends, b for
# failures.
_SCRIPT = Script("""
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1e6
local period, sends, share = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local open_seconds, probes, probe_seconds = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local memory = tonumber(ARGV[7])
local part = math.floor(now / (period / 10))
local answer = {}
for i, key in ipairs(KEYS) do
  local good, bad = tonumber(ARGV[5 * i + 3]), tonumber(ARGV[5 * i + 4])
  local broken, retry_after = tonumber(ARGV[5 * i + 5]), tonumber(ARGV[5 * i + 6])
  local try = ARGV[5 * i + 7] == '1'
  local flat, known = redis.call('HGETALL', key), {}
  for j = 1, #flat, 2 do known[flat[j]] = flat[j + 1] end
  local state = 'CLOSED'
  if known['until'] then state = now < tonumber(known['until']) and 'OPEN' or 'HALF_OPEN' end
  local resting = math.max(tonumber(known['rest'] or 0), retry_after > 0 and now + retry_after or 0)
  local fails, change = false, 0
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
    if fails then change = broken > 0 and 1 or 2 end
    if good > 0 then redis.call('HINCRBY', key, 'g' .. part, good) end
    if bad > 0 then redis.call('HINCRBY', key, 'b' .. part, bad) end
  elseif state == 'HALF_OPEN' and good + bad > 0 then
    fails = bad > 0
    if fails then change = 3 end
    if not fails then
      redis.call('HDEL', key, 'probed')
      if redis.call('HINCRBY', key, 'answers', good) >= probes then
        redis.call('DEL', key)
        state, change = 'CLOSED', 4
      end
    end
  end
  if fails then
    redis.call('DEL', key)
    redis.call('HSET', key, 'until', string.format('%.3f', now + open_seconds))
    state = 'OPEN'
  end
  if resting > now then redis.call('HSET', key, 'rest', string.format('%.3f', resting)) end
  local allowed = 0
  if state == 'HALF_OPEN' and try and now >= tonumber(known['probed'] or 0) then
    redis.call('HSET', key, 'probed', string.format('%.3f', now + probe_seconds))
    allowed = probes
  end
  if good + bad > 0 or retry_after > 0 then
    local life = math.max(period, memory * open_seconds, resting - now)
    redis.call('EXPIRE', key, math.ceil(life) + 1)
  end
  answer[4 * i - 3] = state == 'CLOSED' and 0 or (state == 'OPEN' and 1 or 2)
  answer[4 * i - 2] = allowed
  answer[4 * i - 1] = resting > now and 1 or 0
  answer[4 * i] = change
end
return answer
""")


Why = CircuitChange.Why
_STATES = tuple(CircuitState)
_CHANGES = (None, Why.REFUSED, Why.FAILING, Why.PROBE_FAILED, Why.ANSWERED)
"""What the script says of a change: the last value of each account's four."""


@dataclass(slots=True)
class Tally:
    """The outcomes of a window of sends by one account."""

    good: int = 0
    bad: int = 0
    broken: int = 0
    """How many of the bad were Misconfigured."""
    retry_after: float = 0.0
    """The longest time, in seconds, for which the provider asked for no sends."""

    @property
    def is_urgent(self) -> bool:
        """Return whether other processes have to know at once."""
        return bool(self.bad or self.retry_after)

    def count(self, outcome: Outcome) -> None:
        """Add the outcome of one send."""
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
            self.retry_after = max(self.retry_after, _limited(outcome.retry_after))


def _limited(seconds: float | None) -> float:
    """Return a provider's retry-after in seconds, cut to the limit; 0 for an invalid one."""
    if seconds is None or not math.isfinite(seconds):
        return 0.0
    return min(max(seconds, 0.0), RETRY_AFTER_LIMIT)


class CircuitStatus(NamedTuple):
    """What Redis knows of one account."""

    state: CircuitState = CircuitState.CLOSED
    probes: int = 0
    """How many sends may probe it now."""
    resting: bool = False
    """The provider asked for no sends for some time, which has not passed."""
    change: Why | None = None
    """Why this report changed its state; None: it did not."""


@dataclass(slots=True)
class CircuitStates:
    """Which accounts are tried last now, by their ids."""

    last: frozenset[int] = frozenset()
    probes: dict[int, int] = field(default_factory=dict)
    """How many sends may still probe an account whose circuit is half open."""
    changes: Mapping[int, Why] = field(default_factory=dict, compare=False)
    """The accounts whose circuits this report opened or closed, and why."""

    def is_tried_last(self, account_id: int | None) -> bool:
        """Return whether other accounts are tried before this one."""
        return account_id in self.last and not self.probes.get(account_id or 0)

    def count_first_try(self, account_id: int | None) -> None:
        """Count a send that tries this account first, as a probe if its circuit is half open."""
        if account_id in self.probes:
            self.probes[account_id] = max(0, self.probes[account_id] - 1)


ALL_CLOSED = CircuitStates()


_known_closed: TtlCache[int, bool] = TtlCache(seconds=0.2)
"""The accounts whose circuits were closed a moment ago."""
_known_broken: TtlCache[int, bool] = TtlCache(seconds=0.2)
"""Whether an account's circuit was open or half open a moment ago."""
_unreported: TtlCache[int, Tally] = TtlCache(seconds=1)
"""What accounts have answered since then. What is older says nothing of now."""


def _all_known_closed(account_ids: Collection[int]) -> bool:
    return all(_known_closed.get(each, lambda: None) for each in account_ids)


def states(account_ids: Collection[int], *, probing: bool = True) -> CircuitStates:
    """Return which accounts are tried last, and which of those may be probed; at most one call to
    Redis.

    A caller that does not send at once passes `probing=False`: no other would probe in its place.
    """
    if _all_known_closed(account_ids):
        return CircuitStates()
    return _states(_exchange({each: Tally() for each in account_ids}, probing=probing))


def read(account_ids: Collection[int]) -> dict[int, CircuitStatus]:
    """Return what Redis knows of each account; one call."""
    return _exchange({each: Tally() for each in account_ids})


def broken(account_ids: Collection[int]) -> frozenset[int]:
    """Return the accounts whose circuits are not closed; at most one call to Redis."""
    doubtful = [each for each in account_ids if not _all_known_closed([each])]
    if unknown := [each for each in doubtful if _known_broken.get(each, lambda: None) is None]:
        read(unknown)
    return frozenset(each for each in doubtful if _known_broken.get(each, lambda: None))


def report(
    sends: Iterable[tuple[int | None, Outcome]], *, rest_seconds: float = 0.0
) -> CircuitStates:
    """Report the outcomes of sends by account, and return which accounts are tried last now; at
    most one call to Redis.

    An account that failed to send is tried last for `rest_seconds`.
    """
    tallies: defaultdict[int, Tally] = defaultdict(Tally)
    for account_id, outcome in sends:
        if account_id is not None:  # the simulator of organizations without a provider
            tallies[account_id].count(outcome)
    for tally in tallies.values():
        tally.retry_after = max(tally.retry_after, rest_seconds if tally.bad else 0.0)
    if _all_known_closed(tallies) and not any(tally.is_urgent for tally in tallies.values()):
        for account_id, tally in tallies.items():
            if unreported := _unreported.get(account_id, lambda: None):
                unreported.good += tally.good
            else:
                _unreported.put(account_id, tally)
        return CircuitStates()
    return _states(_exchange(tallies))


def _states(statuses: Mapping[int, CircuitStatus]) -> CircuitStates:
    return CircuitStates(
        frozenset(
            each
            for each, status in statuses.items()
            if status.state is not CircuitState.CLOSED or status.resting
        ),
        {
            each: status.probes
            for each, status in statuses.items()
            if status.probes and not status.resting
        },
        {each: status.change for each, status in statuses.items() if status.change},
    )


def _exchange(tallies: Mapping[int, Tally], *, probing: bool = False) -> dict[int, CircuitStatus]:
    """Report tallies, and return what Redis knows then."""
    if not tallies:
        return {}
    for account_id, tally in tallies.items():
        if tally.good:  # it accepts other sends now: not all of its settings are wrong
            tally.broken = 0
        unreported = _unreported.get(account_id, lambda: None)
        tally.good += unreported.good if unreported else 0
        _unreported.forget(account_id)
        _known_closed.forget(account_id)
    keys = [f"rme:circuit:{account_id}" for account_id in tallies]
    numbers = [
        number
        for tally in tallies.values()
        for number in (tally.good, tally.bad, tally.broken, tally.retry_after, int(probing))
    ]
    answer = limiter.run(
        _SCRIPT,
        keys,
        settings.CIRCUIT_SECONDS,
        settings.CIRCUIT_SENDS,
        settings.CIRCUIT_FAILURES,
        settings.CIRCUIT_OPEN_SECONDS,
        PROBES,
        PROBE_ANSWER_SECONDS,
        CIRCUIT_MEMORY,
        *numbers,
    )
    if answer is None:  # Redis is away
        return dict.fromkeys(tallies, CircuitStatus())
    values = zip(answer[::4], answer[1::4], answer[2::4], answer[3::4], strict=True)
    statuses = {
        account_id: CircuitStatus(_STATES[state], probes, bool(resting), _CHANGES[change])
        for account_id, (state, probes, resting, change) in zip(tallies, values, strict=True)
    }
    for account_id, status in statuses.items():
        _known_broken.put(account_id, status.state is not CircuitState.CLOSED)
        if status._replace(change=None) == CircuitStatus():
            _known_closed.put(account_id, True)
    return statuses
