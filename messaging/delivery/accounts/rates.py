"""How fast each provider account is sent to: a rate that all processes share.

A rate delays and never fails. What has to wait mostly stays unclaimed: no more is claimed than the
accounts may be sent, so that the order of arrival holds. Only where that was wrong (an account that
takes some of the addresses, two workers at once) are claimed deliveries put back.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

from messaging.domain.accounts.admission import Availability, Backlog, UnavailableReason
from messaging.domain.accounts.routing import Key, key_of
from messaging.domain.policy import CategoryRules
from messaging.policy.organization_policy import Account
from messaging.store.reports import backlogs
from rme.core.cache import TtlCache
from rme.core.redis.rate_limits import Limit, limiter

COUNT_SECONDS = 60
"""The backlog of an organization is counted anew at least so often."""


# --- the send loop --------------------------------------------------------------------------------


def availability(accounts: Iterable[Account], count: int) -> dict[Key, Availability]:
    """Return how many of `count` sends each account with a rate takes now; at most one call to
    Redis.
    """
    return _grant({account: count for account in accounts if account.rate}, take=False)


def reserve(counts: Mapping[Account, int]) -> dict[Key, Availability]:
    """Count sends against the rates, as many as each allows; at most one call to Redis."""
    return _grant(counts, take=True)


def _grant(counts: Mapping[Account, int], *, take: bool) -> dict[Key, Availability]:
    if not counts:
        return {}
    limits = {f"account:{each.id}": (_limit(each), count) for each, count in counts.items()}
    grants = limiter.grant(limits, take=take)
    return {
        key_of(account): Availability(grant.count, grant.wait, UnavailableReason.RATE)
        for account, grant in zip(counts, grants, strict=True)
    }


def seconds_each(account: Account) -> float:
    """Return how many seconds one send takes of an account's rate."""
    return 1 / _limit(account).count


def _limit(account: Account) -> Limit:
    return Limit(account.rate or 1, 1)


def preferred(accounts: Sequence[Account]) -> list[Account]:
    """Return the accounts of the first priority, if every one has a rate; else an empty list."""
    active = [account for account in accounts if account.active]
    first = min((account.priority for account in active), default=0)
    first_accounts = [account for account in active if account.priority == first]
    return first_accounts if all(account.rate for account in first_accounts) else []


# --- accept ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _BacklogCount:
    """The number of messages that waited when they were counted, plus those accepted since."""

    messages: float
    at: float
    """When it was counted (monotonic)."""
    period: int
    """The period of time that it counts for."""


_counts: TtlCache[tuple[object, ...], _BacklogCount] = TtlCache(seconds=COUNT_SECONDS)


def backlog(
    organization_id: str, channel: str, accounts: Sequence[Account], rules: CategoryRules
) -> Backlog | None:
    """Return what goes before a message for these accounts; None if they have no rate.

    It is counted anew after a hundredth of the message's life, at most after a minute.
    """
    going = preferred(accounts)
    if not going:
        return None
    rate = sum(account.rate or 0 for account in going)
    life = rules.expires_after.total_seconds()
    limit = round(rate * (life + COUNT_SECONDS))
    period = int(monotonic() / min(life / 100, COUNT_SECONDS))
    key = (organization_id, channel, rules.priority, limit)
    count = _counts.get(key, lambda: None)
    if count is None or count.period != period:
        new_count = _BacklogCount(
            backlogs.count_ready(organization_id, channel, rules.priority, limit),
            monotonic(),
            period,
        )
        if count:  # what was accepted and is not committed was not counted
            sent_at_most = rate * (new_count.at - count.at)
            new_count.messages = max(new_count.messages, count.messages - sent_at_most)
        count = new_count
        _counts.put(key, count)
    return Backlog(key, count.messages, rate, life)


def add(accepted: Iterable[Backlog]) -> None:
    """Count a message that was accepted for each of these backlogs."""
    for entry in accepted:
        if count := _counts.get(entry.key, lambda: None):
            count.messages += 1
