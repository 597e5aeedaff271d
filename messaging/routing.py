"""Which provider accounts may take a send, in which order."""

import random

from messaging.policy import Account, Policy
from messaging.providers.base import ProviderSettings
from messaging.providers.simulator import Simulator
from rme.core.channels import Channel

SIMULATORS = {
    channel: Account(None, "simulator", channel, Simulator(ProviderSettings()))
    for channel in Channel
}
"""What takes the sends of TEST applications, and of organizations that have no provider yet."""


def _matches(account: Account, channel: Channel, address: str | None) -> bool:
    if not account.match or not address:
        return True
    if channel is Channel.EMAIL:
        return address.rpartition("@")[2] in account.match
    return address.startswith(account.match)


def configured(policy: Policy, channel: str, address: str | None, *, test: bool) -> list[Account]:
    """Give the accounts that are set up for an address, paused ones too, in no order."""
    if test or not policy.accounts:
        return [SIMULATORS[Channel(channel)]]
    return [
        account
        for account in policy.accounts
        if account.channel == channel and _matches(account, Channel(channel), address)
    ]


def order(accounts: list[Account]) -> list[Account]:
    """Put the active accounts in the order to try: by priority, within one by weight at random."""
    # Efraimidis and Spirakis: sorting by random()^(1/weight) draws without replacement by weight.
    keyed = [
        (account.priority, -(random.random() ** (1 / account.weight)), account)
        for account in accounts
        if account.active
    ]
    return [account for _, _, account in sorted(keyed, key=lambda entry: entry[:2])]


def routes(policy: Policy, channel: str, address: str | None, *, test: bool) -> list[Account]:
    """Give the active accounts for an address in the order to try them; empty: none takes it."""
    accounts = configured(policy, channel, address, test=test)
    return accounts if len(accounts) == 1 and accounts[0].active else order(accounts)
