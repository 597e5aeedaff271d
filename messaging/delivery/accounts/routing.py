"""Which provider accounts may take a send, in which order."""

import random
from collections.abc import Collection, Iterable, Sequence

from messaging.delivery.accounts import circuits
from messaging.delivery.accounts.circuits import ALL_WELL, Standing
from messaging.policy.organization_policy import Account, Policy
from messaging.providers.simulator import Simulator
from rme.core.cache import TtlCache
from rme.core.channels import Channel
from rme.core.provider import ProviderSettings

SIMULATORS = {
    channel: Account(None, "simulator", channel, Simulator(ProviderSettings()))
    for channel in Channel
}
"""What takes the sends of TEST applications, and of organizations that have no provider yet."""

Devices = frozenset[tuple[str, str]]
"""What a person's devices are, for PUSH: (platform, app)."""

_standings: TtlCache[tuple[int, ...], Standing] = TtlCache(seconds=1)


def _matches(account: Account, address: str | None, devices: Devices) -> bool:
    if account.channel is Channel.PUSH:
        return not devices or any(reaches(account, *device) for device in devices)
    if not account.match or not address:
        return True
    if account.channel is Channel.EMAIL:
        return address.rpartition("@")[2] in account.match
    return address.startswith(account.match)


def reaches(account: Account, platform: str, app: str) -> bool:
    """Say whether an account reaches a device: by its platform, and what the account matches.

    It matches platforms and apps: an organization may have a key for each.
    """
    reached = account.provider.platforms if account.provider else frozenset()
    if reached and platform not in reached:
        return False
    return not account.match or not {platform, app}.isdisjoint(account.match)


def configured(
    policy: Policy,
    channel: str,
    address: str | None,
    *,
    test: bool,
    devices: Devices = frozenset(),
) -> list[Account]:
    """Give the accounts that are set up for an address, or for any of the devices, in no order.

    Those that are paused too, for which messages may wait; those that are draining not.
    """
    if test or not policy.accounts:
        return [SIMULATORS[Channel(channel)]]
    return [
        account
        for account in policy.accounts
        if account.channel == channel
        and not account.draining
        and _matches(account, address, devices)
    ]


def order(
    accounts: list[Account], standing: Standing = ALL_WELL, tried: int | None = None
) -> list[Account]:
    """Put the active accounts in the order to try: by priority, within one by weight at random.

    Those that stand badly (an open circuit) go last, in the same order among themselves. One that
    is draining goes where it was tried before.
    """
    # Efraimidis and Spirakis: sorting by random()^(1/weight) draws without replacement by weight.
    keyed = [
        (
            standing.goes_last(account.id),
            account.priority,
            -(random.random() ** (1 / account.weight)),
            account,
        )
        for account in accounts
        if account.active or (account.draining and account.id == tried)
    ]
    return [account for *_, account in sorted(keyed, key=lambda entry: entry[:3])]


def routes(
    policy: Policy,
    channel: str,
    address: str | None,
    *,
    test: bool,
    standing: Standing = ALL_WELL,
    tried: int | None = None,
) -> list[Account]:
    """Give the active accounts for an address in the order to try them; empty: none takes it.

    `tried` is the account by which a former try was: it ends that, though it be draining.
    """
    accounts = configured(policy, channel, address, test=test)
    accounts += [
        account
        for account in policy.accounts
        if account.draining and account.id == tried and account.channel == channel
    ]
    if len(accounts) == 1 and accounts[0].active:
        return accounts
    found = order(accounts, standing, tried)
    if found:
        standing.chosen(found[0].id)
    return found


class Router:
    """Find the routes of many sends of one channel: once for all that nothing tells apart.

    So it is where no account matches addresses or drains, and no two stand in the same place.
    """

    def __init__(self, policy: Policy, channel: str) -> None:
        self._policy, self._channel = policy, channel
        self._standing = standing_of(policy, channel)
        accounts = [account for account in policy.accounts if account.channel == channel]
        self._one_by_one = bool(self._standing.probes) or any(
            account.draining or (account.match and channel != Channel.PUSH) for account in accounts
        )
        self._found: dict[tuple[bool, tuple[str, str] | None], Sequence[Account]] = {}

    def routes(
        self,
        address: str | None,
        *,
        test: bool,
        tried: int | None,
        device: tuple[str, str] | None = None,
    ) -> Sequence[Account]:
        """Give the routes for an address, or for a device (its platform and app); see `routes`."""
        known = self._found.get((test, device))
        if known is not None:
            return known
        found = routes(
            self._policy, self._channel, address, test=test, standing=self._standing, tried=tried
        )
        if device:
            found = [account for account in found if reaches(account, *device)]
        places = {(self._standing.goes_last(each.id), each.priority) for each in found}
        if not self._one_by_one and len(places) == len(found):
            self._found[test, device] = found
        return found


def expected(accounts: list[Account]) -> Account:
    """Say which account will probably be the first, as things stood up to a second ago."""
    if len(accounts) == 1:
        return accounts[0]
    active = tuple(a.id for a in accounts if a.active and a.id is not None)
    standing = _standings.get(active, lambda: circuits.look(active, probing=False))
    return (order(accounts, standing or ALL_WELL) or accounts)[0]


def standing_of(policy: Policy, channel: str) -> Standing:
    """Ask how the accounts of a channel stand, where there is a choice between any."""
    active = [a.id for a in policy.accounts if a.channel == channel and a.active and a.id]
    return circuits.look(active) if len(active) > 1 else Standing()


def lower(waiting: Iterable[list[Account]], last: Collection[int]) -> None:
    """Put accounts that stand badly last, in routes that were found before."""
    if last:
        for accounts in waiting:
            accounts.sort(key=lambda account: account.id in last)
