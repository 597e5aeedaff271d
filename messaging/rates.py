"""How fast each provider account is sent to: a bucket that all processes share.

A rate delays and never fails. What waits for it mostly stays where it is: no more is claimed than
the accounts may be sent, so that the order of arrival holds. Only where that was judged wrongly (an
account that takes a part of the addresses, two workers at once) is what was claimed put back.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

from messaging import policy
from messaging.outcome import BACKOFF_LIMIT, Sending
from messaging.policy import Account
from rme.core.limits import Limit, limiter

WAITING = "RATE"


def _limit(account: Account) -> Limit:
    return Limit(account.rate or 1, 1)


def _key(account: Account) -> str:
    return f"account:{account.id}"


def room(organization_id: str, channel: str, wanted: int) -> int:
    """Say how many of those wanted may be claimed now.

    The accounts that go first decide; those behind them take over when they fail, at their rates.
    """
    serving = [a for a in policy.of(organization_id).accounts if a.channel == channel and a.active]
    first = min((account.priority for account in serving), default=0)
    going = [account for account in serving if account.priority == first]
    if not going or not all(account.rate for account in going):
        return wanted
    given = limiter.grant({_key(a): (_limit(a), wanted) for a in going}, take=False)
    return min(wanted, sum(grant.count for grant in given))


def hold(hand: Iterable[Sending], now: datetime) -> None:
    """Let what goes next count against the rates; what is beyond one waits for its turn."""
    limited = [(sending, Counter(_limited(sending))) for sending in hand]
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
