"""Which sends may go now: the limits of circuits, adaptive limits and rates together.

`rooms` is asked before deliveries are claimed, so that what cannot go stays in its order; `admit`
decides of each delivery that is about to leave, and `shared_availability` answers for health and
the admin.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from messaging.delivery.accounts import circuits, rates, routing
from messaging.delivery.accounts.concurrency import ProcessLoad
from messaging.delivery.outgoing import OutgoingDelivery
from messaging.domain.accounts import admission
from messaging.domain.accounts.admission import (
    Availability,
    CircuitState,
    RateGrant,
    UnavailableReason,
    room,
)
from messaging.domain.accounts.routing import Key, key_of, try_last
from messaging.domain.channels import Channel
from messaging.domain.progress.next_steps import NO_ROOM_SECONDS
from messaging.domain.statuses import WaitReason
from messaging.policy import organization_policy
from messaging.policy.organization_policy import Account, Policy

# --- before deliveries are claimed ----------------------------------------------------------------


def rooms(counts: Mapping[str, int], channel: str, load: ProcessLoad) -> dict[str, int]:
    """Return how many of those wanted of each organization may be claimed now."""
    free = process_rooms(counts, channel, load)
    used_rooms = {each: count for each, count in free.items() if count}
    return {**free, **rate_rooms(used_rooms, channel)}


def process_rooms(counts: Mapping[str, int], channel: str, load: ProcessLoad) -> dict[str, int]:
    """Return how many of those wanted of each organization this process may hand over now."""
    if not load.window():
        return dict.fromkeys(counts, 0)
    policies = organization_policy.of_many(list(counts))
    accounts = {each: _active(policies[each], channel) for each in counts}
    by_account = load.availability(account for active in accounts.values() for account in active)
    return {
        each: room([by_account[key_of(account)] for account in accounts[each]], count)
        for each, count in counts.items()
    }


def rate_rooms(counts: Mapping[str, int], channel: str) -> dict[str, int]:
    """Return how many of those wanted of each organization the accounts' rates allow now.

    The accounts of the first priority decide: those behind them are tried only when they fail.
    """
    policies = organization_policy.of_many(list(counts))
    first = {
        each: rates.preferred([a for a in policies[each].accounts if a.channel == channel])
        for each in counts
    }
    by_account = rates.availability(
        (account for accounts in first.values() for account in accounts),
        max(counts.values(), default=0),
    )
    return {
        each: room([by_account[key_of(account)] for account in accounts], counts[each])
        if accounts
        else counts[each]
        for each, accounts in first.items()
    }


def _active(policy: Policy, channel: str) -> list[Account]:
    accounts = [
        account for account in policy.accounts if account.channel == channel and account.active
    ]
    # The simulator sends for organizations without accounts. Where all accounts are paused, the
    # deliveries are claimed as well, and wait for an account one by one.
    return accounts or [routing.SIMULATORS[Channel(channel)]]


# --- before deliveries leave ----------------------------------------------------------------------


def admit(
    window: Sequence[OutgoingDelivery],
    failing: Collection[int],
    load: ProcessLoad,
    now: datetime,
) -> None:
    """Decide which deliveries of a window may go now; the others wait.

    Accounts in `failing` are tried after the others. An account that takes no more is passed over
    for the next that does.
    """
    by_identity = {  # few accounts, of many deliveries
        id(account): account
        for delivery in window
        for untried in delivery.untried.values()
        for account in untried
    }
    accounts = {key_of(account): account for account in by_identity.values()}
    try_last((each for one in window for each in one.untried.values()), failing)
    limited = {
        key: availability
        for key, availability in load.availability(accounts.values()).items()
        if availability.is_limited
    }
    if limited:
        _admit_by_limits(window, limited, load, now)
    if any(account.rate for account in accounts.values()):
        _admit_by_rates([each for each in window if not each.decided], now)


def _admit_by_limits(
    window: Sequence[OutgoingDelivery],
    limited: Mapping[Key, Availability],
    load: ProcessLoad,
    now: datetime,
) -> None:
    counts = {key: availability.count or 0 for key, availability in limited.items()}
    used: Counter[Key] = Counter()
    for delivery in window:
        free = {key: count - used[key] for key, count in counts.items()}
        routes, sends = admission.admit(list(delivery.untried.values()), free, key_of)
        delivery.set_routes(routes)
        if sends is None:
            _wait(delivery, now)
        else:
            used += Counter({key: sends[key] for key in sends if key in counts})
    load.note_sends({key: used[key] for key in limited})


def _wait(delivery: OutgoingDelivery, now: datetime) -> None:
    if delivery.account is None:
        delivery.wait(WaitReason.PROVIDER, now + timedelta(seconds=NO_ROOM_SECONDS))
    else:  # this claim has tried it, which counts
        delivery.back_off(now=now, reason="the other accounts take no more now")


def _admit_by_rates(window: Iterable[OutgoingDelivery], now: datetime) -> None:
    limited = [(each, Counter(accounts)) for each in window if (accounts := _rated(each))]
    sends = sum((counts for _, counts in limited), Counter[Account]())
    granted = rates.reserve(sends)
    grants = {
        account: RateGrant(
            granted[key_of(account)].count or 0,
            granted[key_of(account)].wait,
            rates.seconds_each(account),
        )
        for account in sends
    }
    used: Counter[Account] = Counter()
    for delivery, counts in limited:
        seconds = admission.rate_wait(counts, used, grants)
        if seconds is not None:
            delivery.wait(WaitReason.RATE, now + timedelta(seconds=seconds))
        used += counts


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
