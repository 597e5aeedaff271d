"""Which provider accounts may take a send, and in which order."""

import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from messaging.delivery.accounts import circuits
from messaging.delivery.accounts.circuits import ALL_CLOSED, CircuitStates
from messaging.policy.organization_policy import Account, Policy
from messaging.providers.simulator import Simulator
from rme.core.cache import TtlCache
from rme.core.channels import Channel
from rme.core.provider import ProviderSettings

SIMULATORS = {
    channel: Account(None, "simulator", channel, Simulator(ProviderSettings()))
    for channel in Channel
}
"""The accounts of TEST applications, and of organizations that are set to the simulator."""

Devices = frozenset[tuple[str, str]]
"""A recipient's devices, for PUSH: (platform, app)."""

_circuit_states: TtlCache[tuple[int, ...], CircuitStates] = TtlCache(seconds=1)


def _matches(account: Account, address: str | None, devices: Devices) -> bool:
    if account.channel is Channel.PUSH:
        return not devices or any(reaches(account, *device) for device in devices)
    if not account.match or not address:
        return True
    if account.channel is Channel.EMAIL:
        return address.rpartition("@")[2] in account.match
    return address.startswith(account.match)


def reaches(account: Account, platform: str, app: str) -> bool:
    """Return whether an account reaches a device.

    Its provider has to serve the platform, and `match`, if it is set, to name the platform or the
    app: an organization may have a key for each.
    """
    reached = account.provider.platforms if account.provider else frozenset()
    if reached and platform not in reached:
        return False
    return not account.match or not {platform, app}.isdisjoint(account.match)


def serving(policy: Policy) -> list[Account]:
    """Return an organization's accounts, and the simulator where it is set to it and has none."""
    served = {account.channel for account in policy.accounts}
    simulators = [row for row in SIMULATORS.values() if row.channel not in served]
    return [*policy.accounts, *(simulators if policy.simulated else [])]


def configured(
    policy: Policy,
    channel: str,
    address: str | None,
    *,
    test: bool,
    devices: Devices = frozenset(),
) -> list[Account]:
    """Return the accounts that are set up for an address, or for any of the devices, unordered.

    Paused ones are among them, since messages may wait for them; draining ones are not.
    """
    accounts = [account for account in policy.accounts if account.channel == channel]
    if test or (policy.simulated and not accounts):
        return [SIMULATORS[Channel(channel)]]
    return [
        account
        for account in accounts
        if not account.draining and _matches(account, address, devices)
    ]


def order(
    accounts: list[Account],
    states: CircuitStates = ALL_CLOSED,
    previous: int | None = None,
) -> list[Account]:
    """Return the active accounts in the order to try: by priority, and by weighted random within
    one priority.

    Accounts with an open circuit come last, in the same order among themselves. A draining account
    is among them only if it made the previous try.
    """
    # Efraimidis and Spirakis: sorting by random()^(1/weight) draws without replacement by weight.
    keyed = [
        (
            *_place(account, states),
            -(random.random() ** (1 / account.weight)),
            account,
        )
        for account in accounts
        if account.active or (account.draining and account.id == previous)
    ]
    return [account for *_, account in sorted(keyed, key=lambda entry: entry[:3])]


def _place(account: Account, states: CircuitStates) -> tuple[bool, int]:
    """Return the place of an account; those with the same one share by weight."""
    return states.is_tried_last(account.id), account.priority


class RouteAnswer(StrEnum):
    """What an account has to do with a send to an address."""

    FIRST = "FIRST"
    """It is tried first, or by its share."""
    NEXT = "NEXT"
    """It is tried if those before it do not take the message."""
    TRIED_LAST = "TRIED_LAST"
    """Likewise, and after the others, as its circuit is not closed or its provider asked for it."""
    NO_MATCH = "NO_MATCH"
    """It takes other addresses or devices."""
    DRAINING = "DRAINING"
    """It takes nothing new."""
    PAUSED = "PAUSED"
    BROKEN = "BROKEN"
    """Its settings are invalid."""


@dataclass(frozen=True, slots=True)
class RouteStep:
    """An account of a route, and its share of those that are tried first."""

    account: Account
    answer: RouteAnswer
    share: float = 0.0


def explain(
    policy: Policy, channel: str, address: str | None, *, devices: Devices = frozenset()
) -> list[RouteStep]:
    """Return what each account of a channel has to do with an address, in the order of tries.

    Those that are not tried come last. Nothing is probed or counted.
    """
    accounts = configured(policy, channel, address, test=False, devices=devices)
    ids = [each.id for each in accounts if each.active and each.id is not None]
    states = circuits.states(ids, probing=False)
    tried = sorted(order(accounts, states), key=lambda each: (_place(each, states), -each.weight))
    first = [each for each in tried if _place(each, states) == _place(tried[0], states)]
    total = sum(each.weight for each in first)
    steps = [
        RouteStep(each, RouteAnswer.FIRST, each.weight / total)
        if each in first
        else RouteStep(each, RouteAnswer.TRIED_LAST)
        if states.is_tried_last(each.id)
        else RouteStep(each, RouteAnswer.NEXT)
        for each in tried
    ]
    others = [a for a in policy.accounts if a.channel == channel and a not in tried]
    return [*steps, *(RouteStep(each, _why_not(each, address, devices)) for each in others)]


def _why_not(account: Account, address: str | None, devices: Devices) -> RouteAnswer:
    """Return why an account is not tried."""
    if account.provider is None:
        return RouteAnswer.BROKEN
    if not _matches(account, address, devices):
        return RouteAnswer.NO_MATCH
    return RouteAnswer.DRAINING if account.draining else RouteAnswer.PAUSED


def routes(
    policy: Policy,
    channel: str,
    address: str | None,
    *,
    test: bool,
    states: CircuitStates = ALL_CLOSED,
    previous: int | None = None,
) -> list[Account]:
    """Return the active accounts for an address in the order to try them; empty: none takes it.

    The account of the previous try is among them, even if it is draining.
    """
    accounts = configured(policy, channel, address, test=test)
    accounts += [
        account
        for account in policy.accounts
        if account.draining and account.id == previous and account.channel == channel
    ]
    if len(accounts) == 1 and accounts[0].active:
        return accounts
    found = order(accounts, states, previous)
    if found:
        states.count_first_try(found[0].id)
    return found


class Router:
    """Finds the routes of many sends of one organization and channel.

    It finds them once for all sends, unless accounts match addresses, drain or are probed, or two
    have the same priority.
    """

    def __init__(self, policy: Policy, channel: str) -> None:
        self._policy, self._channel = policy, channel
        self._states = _states_of(policy, channel)
        accounts = [account for account in policy.accounts if account.channel == channel]
        self._one_by_one = bool(self._states.probes) or any(
            account.draining or (account.match and channel != Channel.PUSH) for account in accounts
        )
        self._found: dict[tuple[bool, tuple[str, str] | None], Sequence[Account]] = {}

    def routes(
        self,
        address: str | None,
        *,
        test: bool,
        previous: int | None,
        device: tuple[str, str] | None = None,
    ) -> Sequence[Account]:
        """Return the routes for an address, or for a device (platform and app); see `routes`."""
        known = self._found.get((test, device))
        if known is not None:
            return known
        found = routes(
            self._policy,
            self._channel,
            address,
            test=test,
            states=self._states,
            previous=previous,
        )
        if device:
            found = [account for account in found if reaches(account, *device)]
        places = {_place(each, self._states) for each in found}
        if not self._one_by_one and len(places) == len(found):
            self._found[test, device] = found
        return found


def expected(accounts: list[Account]) -> Account:
    """Return the account that is likely to be tried first, by circuits as of up to a second ago."""
    if len(accounts) == 1:
        return accounts[0]
    active = tuple(a.id for a in accounts if a.active and a.id is not None)
    states = _circuit_states.get(active, lambda: circuits.states(active, probing=False))
    return (order(accounts, states or ALL_CLOSED) or accounts)[0]


def try_last(routes: Iterable[list[Account]], account_ids: Collection[int]) -> None:
    """Move accounts to the end of routes that were found before."""
    if account_ids:
        for accounts in routes:
            accounts.sort(key=lambda account: account.id in account_ids)


def _states_of(policy: Policy, channel: str) -> CircuitStates:
    """Return the circuits of a channel's accounts, where there is more than one to choose from."""
    active = [a.id for a in policy.accounts if a.channel == channel and a.active and a.id]
    return circuits.states(active) if len(active) > 1 else CircuitStates()
