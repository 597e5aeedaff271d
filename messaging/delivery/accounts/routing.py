"""Which provider accounts may take a send, and in which order."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from messaging.delivery.accounts import circuits
from messaging.delivery.accounts.circuits import ALL_CLOSED, CircuitStates
from messaging.domain.accounts import routing
from messaging.domain.accounts.routing import Devices, RouteAnswer, matches, reaches
from messaging.domain.channels import Channel
from messaging.policy.organization_policy import Account, Policy
from messaging.providers.simulator import Simulator
from rme.core.cache import TtlCache
from rme.core.provider import ProviderSettings

SIMULATORS = {
    channel: Account(None, "simulator", channel, Simulator(ProviderSettings()))
    for channel in Channel
}
"""The accounts of TEST applications, and of organizations that are set to the simulator."""

_circuit_states: TtlCache[tuple[int, ...], CircuitStates] = TtlCache(seconds=1)


def serving(policy: Policy) -> list[Account]:
    """Return an organization's accounts, and the simulator if it uses it and has no account."""
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
        if not account.draining and matches(account, address, devices)
    ]


def order(
    accounts: list[Account],
    states: CircuitStates = ALL_CLOSED,
    previous: int | None = None,
) -> list[Account]:
    """Return the active accounts in the order to try (`messaging.domain.accounts.routing`)."""
    return routing.order(accounts, states.is_tried_last, previous, random.random)


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
    steps = [
        RouteStep(*answer)
        for answer in routing.shares(order(accounts, states), states.is_tried_last)
    ]
    tried = [step.account for step in steps]
    untried = [a for a in policy.accounts if a.channel == channel and a not in tried]
    return [*steps, *(RouteStep(each, _why_not(each, address, devices)) for each in untried)]


def _why_not(account: Account, address: str | None, devices: Devices) -> RouteAnswer:
    """Return why an account is not tried."""
    if account.provider is None:
        return RouteAnswer.BROKEN
    if not matches(account, address, devices):
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
    ordered = order(accounts, states, previous)
    if ordered:
        states.count_first_try(ordered[0].id)
    return ordered


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
        cached = self._found.get((test, device))
        if cached is not None:
            return cached
        accounts = routes(
            self._policy,
            self._channel,
            address,
            test=test,
            states=self._states,
            previous=previous,
        )
        if device:
            accounts = [account for account in accounts if reaches(account, *device)]
        places = {routing.place(each, self._states.is_tried_last) for each in accounts}
        if not self._one_by_one and len(places) == len(accounts):
            self._found[test, device] = accounts
        return accounts


def expected(accounts: list[Account]) -> Account:
    """Return the account that is likely to be tried first, by circuits as of up to a second ago."""
    if len(accounts) == 1:
        return accounts[0]
    active = tuple(a.id for a in accounts if a.active and a.id is not None)
    states = _circuit_states.get(active, lambda: circuits.states(active, probing=False))
    return (order(accounts, states or ALL_CLOSED) or accounts)[0]


def _states_of(policy: Policy, channel: str) -> CircuitStates:
    """Return the circuits of a channel's accounts, where there is more than one to choose from."""
    active = [a.id for a in policy.accounts if a.channel == channel and a.active and a.id]
    return circuits.states(active) if len(active) > 1 else CircuitStates()
