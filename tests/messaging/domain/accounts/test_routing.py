"""The order of provider accounts, on values alone."""

from collections import Counter
from dataclasses import dataclass
from random import Random

import pytest

from messaging.domain.accounts import routing
from messaging.domain.accounts.routing import RouteAnswer
from messaging.domain.channels import Channel


@dataclass(frozen=True)
class Account:
    id: int | None
    channel: Channel = Channel.SMS
    priority: int = 100
    weight: int = 1
    match: tuple[str, ...] = ()
    platforms: frozenset[str] = frozenset()
    active: bool = True
    draining: bool = False


def order(*accounts, tried_last=(), previous=None, draw=lambda: 0.5):
    found = routing.order(accounts, lambda key: key in tried_last, previous, draw)
    return [account.id for account in found]


def test_order_is_by_priority():
    assert order(Account(1, priority=3), Account(2, priority=1), Account(3, priority=2)) == [
        2,
        3,
        1,
    ]


def test_order_within_a_priority_is_by_weight():
    draw = Random(7).random
    accounts = Account(1, weight=3), Account(2, weight=1)
    first = Counter(order(*accounts, draw=draw)[0] for _ in range(2000))
    assert 0.70 < first[1] / 2000 < 0.80


def test_inactive_account_is_not_in_the_order():
    assert order(Account(1, active=False), Account(2)) == [2]


@pytest.mark.parametrize(("previous", "ids"), [(None, [2]), (2, [2]), (1, [1, 2])])
def test_draining_account_only_tries_again(previous, ids):
    draining = Account(1, active=False, draining=True)
    assert order(draining, Account(2, priority=200), previous=previous) == ids


@pytest.mark.promise("routes-7")
@pytest.mark.parametrize(
    ("tried_last", "ids"), [((), [1, 2, 3]), ((1, 2), [3, 1, 2]), ((1, 2, 3), [1, 2, 3])]
)
def test_accounts_with_open_circuits_come_last_in_their_order(tried_last, ids):
    accounts = [Account(number, priority=number) for number in (1, 2, 3)]
    assert order(*accounts, tried_last=tried_last) == ids


def test_try_last_keeps_the_order_of_other_accounts():
    waiting = [[Account(1), Account(2), Account(3)], [Account(1)]]
    routing.try_last(waiting, {1, 2})
    assert [[account.id for account in accounts] for accounts in waiting] == [[3, 1, 2], [1]]


@pytest.mark.parametrize(
    ("channel", "match", "address", "matches"),
    [
        (Channel.EMAIL, (), "ada@acme.example", True),
        (Channel.EMAIL, ("acme.example",), "ada@acme.example", True),
        (Channel.EMAIL, ("acme.example",), "ada@mail.acme.example", False),
        (Channel.SMS, ("+41", "+49"), "+41791234567", True),
        (Channel.SMS, ("+41", "+49"), "+12125550100", False),
        (Channel.SMS, ("+41",), None, True),
    ],
)
def test_account_matches_addresses(channel, match, address, matches):
    account = Account(1, channel, match=match)
    assert routing.matches(account, address, frozenset()) is matches


ANDROID = ("ANDROID", "shop")


@pytest.mark.parametrize(
    ("platforms", "match", "reaches"),
    [
        ((), (), True),
        (("ANDROID",), (), True),
        (("IOS",), (), False),
        ((), ("ANDROID",), True),
        ((), ("shop",), True),
        ((), ("bank",), False),
        (("IOS",), ("shop",), False),
    ],
)
def test_account_reaches_devices(platforms, match, reaches):
    account = Account(1, Channel.PUSH, match=match, platforms=frozenset(platforms))
    assert routing.reaches(account, *ANDROID) is reaches
    assert routing.matches(account, None, frozenset({ANDROID})) is reaches
    assert routing.matches(account, None, frozenset())


def test_accounts_tried_first_share_by_weight():
    light, heavy = Account(1, priority=1), Account(2, priority=1, weight=3)
    backup, failing = Account(3, priority=2), Account(4, priority=1)
    found = routing.shares([light, failing, backup, heavy], lambda key: key == 4)
    assert found == [
        (heavy, RouteAnswer.FIRST, 0.75),
        (light, RouteAnswer.FIRST, 0.25),
        (backup, RouteAnswer.NEXT, 0.0),
        (failing, RouteAnswer.TRIED_LAST, 0.0),
    ]
    assert routing.shares([], lambda key: False) == []
