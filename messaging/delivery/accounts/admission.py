"""Which sends may go now: the limits of circuits, adaptive limits and rates together.

`rooms` is asked before deliveries are claimed, so that what cannot go stays in its order; `admit`
decides of each delivery that is about to leave, and `shared_availability` answers for health and
the admin.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from messaging.delivery.accounts import circuits, concurrency, rates, routing
from messaging.delivery.accounts.availability import (
    Availability,
    CircuitState,
    Key,
    UnavailableReason,
    key_of,
)
from messaging.delivery.next_steps import BACKOFF_LIMIT, NO_ROOM_SECONDS, OutgoingDelivery
from messaging.models.statuses import WaitReason
from messaging.policy import organization_policy
from messaging.policy.organization_policy import Account, Policy
from rme.core.channels import Channel

# --- before deliveries are claimed ----------------------------------------------------------------


def rooms(wanted: Mapping[str, int], channel: str) -> dict[str, int]:
    """Return how many of those wanted of each organization may be claimed now."""
    free = process_rooms(wanted, channel)
    some = {each: count for each, count in free.items() if count}
    return {**free, **rate_rooms(some, channel)}


def process_rooms(wanted: Mapping[str, int], channel: str) -> dict[str, int]:
    """Return how many of those wanted of each organization this process may hand over now."""
    if not concurrency.window():
        return dict.fromkeys(wanted, 0)
    policies = organization_policy.of_many(list(wanted))
    accounts = {each: _active(policies[each], channel) for each in wanted}
    found = concurrency.availability(account for some in accounts.values() for account in some)
    return {
        each: _room([found[key_of(account)] for account in accounts[each]], count)
        for each, count in wanted.items()
    }


def rate_rooms(wanted: Mapping[str, int], channel: str) -> dict[str, int]:
    """Return how many of those wanted of each organization the accounts' rates allow now.

    The accounts of the first priority decide: those behind them are tried only when they fail.
    """
    policies = organization_policy.of_many(list(wanted))
    first = {
        each: rates.preferred([a for a in policies[each].accounts if a.channel == channel])
        for each in wanted
    }
    found = rates.availability(
        (account for accounts in first.values() for account in accounts),
        max(wanted.values(), default=0),
    )
    return {
        each: _room([found[key_of(account)] for account in accounts], wanted[each])
        if accounts
        else wanted[each]
        for each, accounts in first.items()
    }


def _active(policy: Policy, channel: str) -> list[Account]:
    accounts = [
        account for account in policy.accounts if account.channel == channel and account.active
    ]
    # The simulator sends for organizations without accounts. Where all accounts are paused, the
    # deliveries are claimed as well, and wait for an account one by one.
    return accounts or [routing.SIMULATORS[Channel(channel)]]


def _room(found: Collection[Availability], wanted: int) -> int:
    counts = [each.count for each in found]
    return wanted if None in counts else min(wanted, sum(count or 0 for count in counts))


# --- before deliveries leave ----------------------------------------------------------------------


def admit(window: Sequence[OutgoingDelivery], failing: Collection[int], now: datetime) -> None:
    """Decide which deliveries of a window may go now; the others wait.

    Accounts in `failing` are tried after the others. An account that takes no more is passed over
    for the next that does.
    """
    accounts = {
        key_of(account): account
        for delivery in window
        for untried in delivery.untried.values()
        for account in untried
    }
    routing.try_last((each for one in window for each in one.untried.values()), failing)
    limited = {
        key: found
        for key, found in concurrency.availability(accounts.values()).items()
        if found.is_limited
    }
    if limited:
        _admit_by_limits(window, limited, now)
    if any(account.rate for account in accounts.values()):
        _admit_by_rates([each for each in window if not each.decided], now)


def _admit_by_limits(
    window: Sequence[OutgoingDelivery], limited: Mapping[Key, Availability], now: datetime
) -> None:
    left = {key: found.count or 0 for key, found in limited.items()}
    for delivery in window:
        for untried in delivery.untried.values():
            untried.sort(key=lambda account: left.get(key_of(account), 1) <= 0)
        wanted = Counter(key_of(account) for account in delivery.next_accounts())
        if any(left.get(key, 1) <= 0 for key in wanted):  # all devices of a recipient, or none
            _wait(delivery, now)
            continue
        for key, count in wanted.items():
            if key in left:
                left[key] -= count
    concurrency.note_sends({key: (limited[key].count or 0) - left[key] for key in limited})


def _wait(delivery: OutgoingDelivery, now: datetime) -> None:
    if delivery.account is None:
        delivery.wait(WaitReason.PROVIDER, now + timedelta(seconds=NO_ROOM_SECONDS))
    else:  # this claim has tried it, which counts
        delivery.back_off(now=now, reason="the other accounts take no more now")


def _admit_by_rates(window: Iterable[OutgoingDelivery], now: datetime) -> None:
    limited = [(each, Counter(found)) for each in window if (found := _rated(each))]
    wanted = sum((counts for _, counts in limited), Counter[Account]())
    granted = rates.reserve(wanted)
    left = {account: granted[key_of(account)].count or 0 for account in wanted}
    for delivery, counts in limited:  # all devices of a recipient, or none
        waits = [
            granted[key_of(account)].wait - left[account] * rates.seconds_each(account)
            for account in counts
            if left[account] <= 0
        ]
        if waits:
            seconds = min(max(waits), BACKOFF_LIMIT)
            delivery.wait(WaitReason.RATE, now + timedelta(seconds=seconds))
        for account, count in counts.items():
            left[account] -= count


def _rated(delivery: OutgoingDelivery) -> list[Account]:
    return [each for each in delivery.next_accounts() if each.rate and each.id is not None]


# --- for health and the admin ---------------------------------------------------------------------


def shared_availability(account_ids: Collection[int]) -> dict[int, Availability]:
    """Return whether each account takes sends now, as all processes see it; one call to Redis."""
    return {each: _shared(status) for each, status in circuits.read(account_ids).items()}


def _shared(status: circuits.CircuitStatus) -> Availability:
    if status.state is not CircuitState.CLOSED:
        return Availability(status.probes, 0.0, UnavailableReason.CIRCUIT, status.state)
    if status.resting:
        return Availability(None, 0.0, UnavailableReason.RETRY_AFTER)
    return Availability()
