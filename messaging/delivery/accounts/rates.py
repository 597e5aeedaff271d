"""How fast each provider account is sent to: a rate that all processes share.

A rate delays and never fails. What has to wait mostly stays unclaimed: no more is claimed than the
accounts may be sent, so that the order of arrival holds. Only where that was wrong (an account that
takes some of the addresses, two workers at once) are claimed deliveries put back.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

from messaging.delivery.accounts.availability import Availability, Key, UnavailableReason, key_of
from messaging.models import Delivery
from messaging.policy.organization_policy import Account, CategoryRules
from rme.core import errors
from rme.core.cache import TtlCache
from rme.core.db import sql
from rme.core.redis.rate_limits import Limit, limiter

TOO_LONG = "The provider's rate would make this wait for longer than it is of use; see Retry-After."
COUNT_SECONDS = 60
"""The backlog of an organization is counted anew at least so often."""
# Read by the index delivery_ready alone.
_BACKLOG = f"""
SELECT count(*) FROM (
  SELECT FROM unnest(%s::int[]) before(priority), LATERAL (
    SELECT FROM {Delivery._meta.db_table} d WHERE d.status = 'ACCEPTED' AND d.channel = %s
      AND d.priority = before.priority AND d.organization_id = %s ORDER BY d.due_at) d
  LIMIT %s) waiting
"""


# --- the send loop --------------------------------------------------------------------------------


def availability(accounts: Iterable[Account], wanted: int) -> dict[Key, Availability]:
    """Return how many of `wanted` sends each account with a rate takes now; at most one call to
    Redis.
    """
    return _grant({account: wanted for account in accounts if account.rate}, take=False)


def reserve(wanted: Mapping[Account, int]) -> dict[Key, Availability]:
    """Count sends against the rates, as many as each allows; at most one call to Redis."""
    return _grant(wanted, take=True)


def _grant(wanted: Mapping[Account, int], *, take: bool) -> dict[Key, Availability]:
    if not wanted:
        return {}
    limits = {f"account:{each.id}": (_limit(each), count) for each, count in wanted.items()}
    grants = limiter.grant(limits, take=take)
    return {
        key_of(account): Availability(grant.count, grant.wait, UnavailableReason.RATE)
        for account, grant in zip(wanted, grants, strict=True)
    }


def seconds_each(account: Account) -> float:
    """Return how many seconds one send takes of an account's rate."""
    return 1 / _limit(account).count


def _limit(account: Account) -> Limit:
    return Limit(account.rate or 1, 1)


def preferred(accounts: Sequence[Account]) -> list[Account]:
    """Return the accounts of the first priority, if each of them has a rate; else none."""
    active = [account for account in accounts if account.active]
    first = min((account.priority for account in active), default=0)
    found = [account for account in active if account.priority == first]
    return found if all(account.rate for account in found) else []


# --- accept ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Backlog:
    """What waited when it was counted, and what this process accepted after that."""

    count: float
    at: float
    """When it was counted (monotonic)."""
    period: int
    """The period of time that it counts for."""


_backlogs: TtlCache[tuple[object, ...], _Backlog] = TtlCache(seconds=COUNT_SECONDS)


def require(
    organization_id: str, channel: str, accounts: Sequence[Account], rules: CategoryRules
) -> None:
    """Raise RATE_LIMITED if a message would wait for these accounts for longer than its life.

    What goes before it is counted anew after a hundredth of that life, at most after a minute.
    """
    going = preferred(accounts)
    if not going:
        return
    rate = sum(account.rate or 0 for account in going)
    life = rules.expires_after.total_seconds()
    most = round(rate * (life + COUNT_SECONDS))
    period = int(monotonic() / min(life / 100, COUNT_SECONDS))
    key = (organization_id, channel, rules.priority, most)
    backlog = _backlogs.get(key, lambda: None)
    if backlog is None or backlog.period != period:
        counted = _Backlog(
            _count(organization_id, channel, rules.priority, most), monotonic(), period
        )
        if backlog:  # what was accepted and is not committed was not counted
            sent_at_most = rate * (counted.at - backlog.at)
            counted.count = max(counted.count, backlog.count - sent_at_most)
        backlog = counted
        _backlogs.put(key, backlog)
    beyond = backlog.count / rate - life
    if beyond >= 0:
        seconds = str(max(1, math.ceil(beyond)))
        raise errors.RateLimited(TOO_LONG, headers={"Retry-After": seconds})
    backlog.count += 1


def _count(organization_id: str, channel: str, priority: int, most: int) -> int:
    """Count what goes before a message that is accepted now, up to `most`."""
    before = sql.array([str(each) for each in range(priority + 1)])
    ((count,),) = sql.read_in_order(_BACKLOG, [before, channel, organization_id, most])
    return int(count)
