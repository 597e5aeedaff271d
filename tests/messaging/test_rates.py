"""A provider account's rate: it delays, in order, and never fails."""

import time
from collections import Counter
from datetime import timedelta
from itertools import pairwise

import pytest

from messaging import policy, providers, rates, tasks
from messaging.models import Delivery, ProviderAccount
from messaging.providers.base import Provider
from rme.core import limits
from rme.core.channels import Channel
from rme.core.limits import Grant, Limit
from rme.core.outcomes import Accepted
from tests import factories
from tests.rest import message, work

pytestmark = pytest.mark.django_db


class Counting(Provider):
    """Takes everything and counts by account."""

    kind = "counting"
    label = "Counting"
    channels = frozenset(Channel)
    sent: Counter[str] = Counter()
    order: list[str] = []

    class Settings(providers.base.ProviderSettings):
        name: str

    def send(self, dispatches, transport):
        self.sent[self.settings.name] += len(dispatches)
        self.order.extend(dispatch.content.to for dispatch in dispatches)
        return [Accepted("1")] * len(dispatches)


@pytest.fixture
def accounts(org):
    """Register the provider; gives a function that adds an account."""
    providers.REGISTRY["counting"] = Counting
    Counting.sent, Counting.order = Counter(), []

    def add(name, **fields):
        return ProviderAccount.objects.create(
            organization=org,
            name=name,
            kind="counting",
            channel="EMAIL",
            credentials=f'{{"name": "{name}"}}',
            **fields,
        )

    yield add
    del providers.REGISTRY["counting"]


def bulk(api, people, **fields):
    assert api.bulk([message(person, **fields) for person in people]).status_code == 202


def test_grant_gives_what_is_there(redis):
    limiter = limits.Limiter()
    five = Limit(5, 10)
    assert limiter.grant({"k": (five, 3)}) == [Grant(3, 0.0)]
    assert limiter.grant({"k": (five, 9)}, take=False)[0].count == 2
    (grant,) = limiter.grant({"k": (five, 9)})
    assert (grant.count, 1.9 < grant.wait <= 2.0) == (2, True)
    assert limiter.grant({"k": (five, 1), "other": (five, 1)}) == [
        Grant(0, pytest.approx(2.0, abs=0.1)),
        Grant(1, 0.0),
    ]


def test_what_is_beyond_the_rate_is_not_claimed(api, org, accounts):
    accounts("slow", rate=1)
    bulk(api, factories.contacts(org, 5))
    tasks.send_ready("EMAIL")
    assert Counting.sent == {"slow": 1}
    rows = Delivery.objects.filter(status="ACCEPTED").values_list("fence", "waiting")
    assert set(rows) == {(0, None)}


def test_the_rate_holds_over_time_and_nothing_fails(api, org, accounts):
    accounts("slow", rate=40)
    bulk(api, factories.contacts(org, 60))
    started = time.monotonic()
    while Delivery.objects.filter(status="ACCEPTED").exists():
        tasks.send_ready("EMAIL")
        time.sleep(0.02)
    assert time.monotonic() - started > 0.45  # forty at once, and twenty at forty a second
    assert set(Delivery.objects.values_list("status", flat=True)) == {"SENT"}
    assert Counting.sent == {"slow": 60}


def test_the_order_of_arrival_holds_and_transactional_goes_first(api, org, accounts):
    accounts("slow", rate=5)
    factories.template(org, name="news", category="TRANSACTIONAL")
    people = factories.contacts(org, 8)
    for person in people:
        bulk(api, [person])
    for _ in range(2):
        tasks.send_ready("EMAIL")
        time.sleep(1.05)
    tasks.send_ready("EMAIL")
    assert Counting.order == [person.email for person in people]


def test_an_account_beside_it_is_not_held_up(api, org, accounts):
    accounts("slow", rate=1, match=["slow.example"])
    accounts("fast", match=["fast.example"])
    people = factories.contacts(org, 20)
    for number, person in enumerate(people):
        person.email = f"p{number}@{'slow' if number % 2 else 'fast'}.example"
        person.save()
    bulk(api, people)
    work()
    assert Counting.sent == {"slow": 1, "fast": 10}
    waiting = Delivery.objects.filter(status="ACCEPTED").order_by("due_at")
    assert {row.waiting for row in waiting} == {"RATE"}
    due = [row.due_at for row in waiting]
    gaps = [later - sooner for sooner, later in pairwise(due)]
    assert all(timedelta(seconds=0.9) < gap < timedelta(seconds=1.1) for gap in gaps)
    shown = api.get(str(waiting[0].message_id))
    assert shown["recipients"][0]["waiting"] == "RATE"


def test_room_is_of_the_accounts_that_go_first(org, accounts):
    assert rates.room(org.pk, "EMAIL", 50) == 50
    accounts("first", rate=3, priority=1)
    accounts("behind", priority=2)
    policy.forget(org.pk)
    assert rates.room(org.pk, "EMAIL", 50) == 3
    accounts("beside", rate=4, priority=1)
    policy.forget(org.pk)
    assert rates.room(org.pk, "EMAIL", 50) == 7
    accounts("free", priority=1)
    policy.forget(org.pk)
    assert rates.room(org.pk, "EMAIL", 50) == 50


def test_organizations_have_rates_of_their_own(api, org, accounts):
    accounts("slow", rate=1)
    bulk(api, factories.contacts(org, 2))
    tasks.send_ready("EMAIL")
    other = factories.organization("other")
    assert rates.room(org.pk, "EMAIL", 9) == 0
    assert rates.room(other.pk, "EMAIL", 9) == 9
