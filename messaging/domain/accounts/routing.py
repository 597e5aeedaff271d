"""Which accounts may take a send, and in which order they are tried, by their health."""

from collections.abc import Callable, Collection, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeVar

from messaging.domain.channels import Channel

Devices = frozenset[tuple[str, str]]
"""A recipient's devices, for PUSH: (platform, app)."""


class RoutedAccount(Protocol):
    """An account, as far as routing depends on it."""

    @property
    def id(self) -> int | None: ...
    @property
    def channel(self) -> Channel: ...
    @property
    def priority(self) -> int: ...
    @property
    def weight(self) -> int: ...
    @property
    def match(self) -> tuple[str, ...]: ...
    @property
    def platforms(self) -> frozenset[str]: ...
    @property
    def active(self) -> bool: ...
    @property
    def draining(self) -> bool: ...


A = TypeVar("A", bound=RoutedAccount)
Key = int | str
"""An account's id; for the simulator of organizations without a provider, its channel."""


def key_of(account: RoutedAccount) -> Key:
    """Return the key of an account's health."""
    return account.channel if account.id is None else account.id


def matches(account: RoutedAccount, address: str | None, devices: Devices) -> bool:
    """Return whether an account is set up for an address, or for any of the devices."""
    if account.channel is Channel.PUSH:
        return not devices or any(reaches(account, *device) for device in devices)
    if not account.match or not address:
        return True
    if account.channel is Channel.EMAIL:
        return address.rpartition("@")[2] in account.match
    return address.startswith(account.match)


def reaches(account: RoutedAccount, platform: str, app: str) -> bool:
    """Return whether an account reaches a device.

    Its provider has to serve the platform, and `match`, if it is set, to name the platform or the
    app: an organization may have a key for each.
    """
    if account.platforms and platform not in account.platforms:
        return False
    return not account.match or not {platform, app}.isdisjoint(account.match)


class RoutePlace(NamedTuple):
    """The place of an account in the order; those with the same one share by weight."""

    is_tried_last: bool
    priority: int


IsTriedLast = Callable[[int | None], bool]
"""Whether an account, by id, is tried after the others, because of its health."""


def place(account: RoutedAccount, is_tried_last: IsTriedLast) -> RoutePlace:
    """Return the place of an account."""
    return RoutePlace(is_tried_last(account.id), account.priority)


def order(
    accounts: Iterable[A],
    is_tried_last: IsTriedLast,
    previous: int | None,
    draw: Callable[[], float],
) -> list[A]:
    """Return the active accounts in the order to try: by priority, and by weighted random within
    one priority.

    Accounts that are tried last come last, in the same order among themselves. A draining account
    is among them only if it made the previous try. `draw` returns random numbers from 0 to 1.
    """
    # Efraimidis and Spirakis: sorting by random()^(1/weight) draws without replacement by weight.
    keyed = [
        (*place(account, is_tried_last), -(draw() ** (1 / account.weight)), account)
        for account in accounts
        if account.active or (account.draining and account.id == previous)
    ]
    return [account for *_, account in sorted(keyed, key=lambda entry: entry[:3])]


def try_last(routes: Iterable[list[A]], account_ids: Collection[int]) -> None:
    """Move accounts to the end of routes that were found before."""
    if account_ids:
        for accounts in routes:
            accounts.sort(key=lambda account: account.id in account_ids)


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


def shares(accounts: Sequence[A], is_tried_last: IsTriedLast) -> list[tuple[A, RouteAnswer, float]]:
    """Return the accounts of a route in their order, the answer of each, and its share of the sends
    that are tried first.
    """
    tried = sorted(accounts, key=lambda account: (place(account, is_tried_last), -account.weight))
    if not tried:
        return []
    best = place(tried[0], is_tried_last)
    total = sum(account.weight for account in tried if place(account, is_tried_last) == best)
    answers: list[tuple[A, RouteAnswer, float]] = []
    for account in tried:
        if place(account, is_tried_last) == best:
            answers.append((account, RouteAnswer.FIRST, account.weight / total))
        elif is_tried_last(account.id):
            answers.append((account, RouteAnswer.TRIED_LAST, 0.0))
        else:
            answers.append((account, RouteAnswer.NEXT, 0.0))
    return answers
