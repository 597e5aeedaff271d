"""How fast each provider account is sent to: a bucket that all processes share.

A rate delays and never fails. What waits for it mostly stays where it is: no more is claimed than
the accounts may be sent, so that the order of arrival holds. Only where that was judged wrongly (an
account that takes a part of the addresses, two workers at once) is what was claimed put back.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic

from messaging.delivery.next_steps import BACKOFF_LIMIT, Sending
from messaging.models import Delivery
from messaging.policy import organization_policy
from messaging.policy.organization_policy import Account, CategoryRules
from rme.core import errors
from rme.core.cache import TtlCache
from rme.core.db import sql
from rme.core.redis.rate_limits import Limit, limiter

WAITING = "RATE"
TOLD = "The provider's rate would make this wait for longer than it is of use; see Retry-After."
LOOK_SECONDS = 60
# Read by the index delivery_ready alone.
_BACKLOG = f"""
SELECT count(*) FROM (
  SELECT FROM unnest(%s::int[]) before(priority), LATERAL (
    SELECT FROM {Delivery._meta.db_table} d WHERE d.status = 'ACCEPTED' AND d.channel = %s
      AND d.priority = before.priority AND d.organization_id = %s ORDER BY d.due_at) d
  LIMIT %s) waiting
"""


@dataclass(slots=True)
class _Backlog:
    """What waited at the last look, and what this process let in after it."""

    count: float
    at: float
    """When that look was (monotonic)."""
    turn: int
    """The span of time that it counts for."""


_backlogs: TtlCache[tuple[object, ...], _Backlog] = TtlCache(seconds=LOOK_SECONDS)


def _limit(account: Account) -> Limit:
    return Limit(account.rate or 1, 1)


def _key(account: Account) -> str:
    return f"account:{account.id}"


def rooms(wanted: Mapping[str, int], channel: str) -> dict[str, int]:
    """Return how many of those wanted may be claimed now of each organization.

    The accounts that go first decide; those behind them take over when they fail, at their rates.
    """
    policies = organization_policy.of_many(list(wanted))
    going = {
        each: _going([a for a in policies[each].accounts if a.channel == channel])
        for each in wanted
    }
    asked = {
        _key(a): (_limit(a), wanted[each]) for each, accounts in going.items() for a in accounts
    }
    grants = limiter.grant(asked, take=False) if asked else []
    given = {key: grant.count for key, grant in zip(asked, grants, strict=True)}
    return {
        each: min(wanted[each], sum(given[_key(a)] for a in accounts)) if accounts else wanted[each]
        for each, accounts in going.items()
    }


def _going(accounts: Sequence[Account]) -> list[Account]:
    """Give the accounts that go first, where each of them has a rate; empty: there is no limit."""
    active = [account for account in accounts if account.active]
    first = min((account.priority for account in active), default=0)
    going = [account for account in active if account.priority == first]
    return going if all(account.rate for account in going) else []


def require(
    organization_id: str, channel: str, accounts: Sequence[Account], rules: CategoryRules
) -> None:
    """Raise RATE_LIMITED where the wait for these accounts would outlast what a message may wait.

    What is before it is counted anew after a hundredth of that time, at most a minute.
    """
    going = _going(accounts)
    if not going:
        return
    rate = sum(account.rate or 0 for account in going)
    patience = rules.expires_after.total_seconds()
    most = round(rate * (patience + LOOK_SECONDS))
    turn = int(monotonic() / min(patience / 100, LOOK_SECONDS))
    key = (organization_id, channel, rules.priority, most)
    before = _backlogs.get(key, lambda: None)
    if before is None or before.turn != turn:
        looked = _Backlog(_look(organization_id, channel, rules.priority, most), monotonic(), turn)
        if before:  # what was let in, and is not committed, was not seen
            sent_at_most = rate * (looked.at - before.at)
            looked.count = max(looked.count, before.count - sent_at_most)
        before = looked
        _backlogs.put(key, before)
    beyond = before.count / rate - patience
    if beyond >= 0:
        seconds = str(max(1, math.ceil(beyond)))
        raise errors.RateLimited(TOLD, headers={"Retry-After": seconds})
    before.count += 1


def _look(organization_id: str, channel: str, priority: int, most: int) -> int:
    """Count what goes before a message that is accepted now; no further than matters."""
    before = sql.array([str(each) for each in range(priority + 1)])
    ((count,),) = sql.read_in_order(_BACKLOG, [before, channel, organization_id, most])
    return int(count)


def hold(hand: Iterable[Sending], accounts: Sequence[Account], now: datetime) -> None:
    """Let what goes next count against the rates; what is beyond one waits for its turn.

    `accounts` are all that the organization has.
    """
    if not any(account.rate for account in accounts):
        return
    limited = [(sending, Counter(found)) for sending in hand if (found := _limited(sending))]
    wanted = sum((shots for _, shots in limited), Counter[Account]())
    if not wanted:
        return
    grants = limiter.grant({_key(each): (_limit(each), count) for each, count in wanted.items()})
    given = dict(zip(wanted, grants, strict=True))
    left = {account: grant.count for account, grant in given.items()}
    for sending, shots in limited:  # all of a person's devices, or none
        delays = [
            given[account].wait - left[account] / _limit(account).count
            for account in shots
            if left[account] <= 0
        ]
        if delays:
            sending.wait(WAITING, now + timedelta(seconds=min(max(delays), BACKOFF_LIMIT)))
        for account, count in shots.items():
            left[account] -= count


def _limited(sending: Sending) -> list[Account]:
    return [account for account in sending.coming() if account.rate and account.id is not None]
