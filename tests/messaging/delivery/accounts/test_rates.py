"""A provider account's rate: it delays, in order, and never fails."""

from collections import Counter
from datetime import timedelta
from itertools import pairwise

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging import providers
from messaging.delivery.accounts import admission, rates
from messaging.domain.channels import Channel
from messaging.domain.planning import RATE_TOO_SLOW
from messaging.models import Category, Delivery, IdempotencyKey, Message, ProviderAccount
from messaging.policy import organization_policy
from messaging.store.reports import backlogs
from rme.core.cache import TtlCache
from rme.core.db import clock
from rme.core.outcomes import Accepted
from rme.core.provider import Provider, ProviderSettings
from rme.core.redis import rate_limits
from rme.core.redis.rate_limits import Grant, Limit
from tests import factories
from tests.rest import Api, error, message, work
from tests.sending import send_ready

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_clock")]


class Counting(Provider):
    """Takes everything and counts by account."""

    kind = "counting"
    label = "Counting"
    channels = frozenset(Channel)
    sent: Counter[str] = Counter()
    order: list[str] = []

    class Settings(ProviderSettings):
        name: str

    def send(self, dispatches, transport, progress=None):
        self.sent[self.settings.name] += len(dispatches)
        self.order.extend(dispatch.content.to for dispatch in dispatches)
        return [Accepted("1")] * len(dispatches)


@pytest.fixture
def accounts(org):
    """Register the provider; gives a function that adds an account."""
    providers.REGISTRY["counting"] = Counting
    Counting.sent, Counting.order = Counter(), []

    def add(name, channel="EMAIL", **fields):
        return ProviderAccount.objects.create(
            organization=org,
            name=name,
            kind="counting",
            channel=channel,
            credentials=f'{{"name": "{name}"}}',
            **fields,
        )

    yield add
    del providers.REGISTRY["counting"]


def bulk(api, people, **fields):
    assert api.bulk([message(person, **fields) for person in people]).status_code == 202


def test_grant_is_limited_to_the_available_count(redis, redis_clock):
    limiter = rate_limits.Limiter()
    five = Limit(5, 10)
    assert limiter.grant({"k": (five, 3)}) == [Grant(3, 0.0)]
    assert limiter.grant({"k": (five, 9)}, take=False)[0].count == 2
    assert limiter.grant({"k": (five, 9)}) == [Grant(2, 2.0)]
    assert limiter.grant({"k": (five, 1), "other": (five, 1)}) == [Grant(0, 2.0), Grant(1, 0.0)]


def test_messages_beyond_the_rate_are_not_claimed(api, org, accounts, redis_clock):
    accounts("slow", rate=1)
    bulk(api, factories.contacts(org, 5))
    send_ready("EMAIL")
    assert Counting.sent == {"slow": 1}
    rows = Delivery.objects.filter(status="ACCEPTED").values_list("fence", "waiting")
    assert set(rows) == {(0, None)}


@pytest.mark.promise("errors-22", "routes-14")
def test_rate_is_kept_over_time_without_failures(api, org, accounts, redis_clock):
    accounts("slow", rate=40)
    bulk(api, factories.contacts(org, 60))
    sent = []
    while Delivery.objects.filter(status="ACCEPTED").exists():
        send_ready("EMAIL")
        sent.append(Counting.sent["slow"])
        redis_clock.advance(0.0125)
    # Forty at once, and twenty at forty a second.
    assert sent == [40, *(40 + step // 2 for step in range(1, 41))]
    assert set(Delivery.objects.values_list("status", flat=True)) == {"SENT"}
    assert Counting.sent == {"slow": 60}


@pytest.mark.promise("routes-14")
def test_the_order_of_arrival_holds_and_transactional_goes_first(api, org, accounts, redis_clock):
    accounts("slow", rate=5)
    factories.template(org, name="news", category="TRANSACTIONAL")
    people = factories.contacts(org, 8)
    for person in people:
        bulk(api, [person])
    send_ready("EMAIL")
    redis_clock.advance(0.2)
    send_ready("EMAIL")
    assert len(Counting.order) == 6
    redis_clock.advance(1)
    send_ready("EMAIL")
    assert Counting.order == [person.email for person in people]


def test_rate_of_one_account_does_not_delay_another(api, org, accounts):
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
    assert gaps == [timedelta(seconds=1)] * 8
    shown = api.get(str(waiting[0].message_id))
    assert shown["recipients"][0]["waiting"] == "RATE"


def test_room_depends_on_the_accounts_tried_first(org, accounts):
    assert admission.rate_rooms({org.pk: 50}, "EMAIL")[org.pk] == 50
    accounts("first", rate=3, priority=1)
    accounts("behind", priority=2)
    organization_policy.forget(org.pk)
    assert admission.rate_rooms({org.pk: 50}, "EMAIL")[org.pk] == 3
    accounts("beside", rate=4, priority=1)
    organization_policy.forget(org.pk)
    assert admission.rate_rooms({org.pk: 50}, "EMAIL")[org.pk] == 7
    accounts("free", priority=1)
    organization_policy.forget(org.pk)
    assert admission.rate_rooms({org.pk: 50}, "EMAIL")[org.pk] == 50


def test_organizations_have_their_own_rates(api, org, accounts):
    accounts("slow", rate=1)
    bulk(api, factories.contacts(org, 2))
    send_ready("EMAIL")
    other = factories.organization("other")
    assert admission.rate_rooms({org.pk: 9}, "EMAIL")[org.pk] == 0
    assert admission.rate_rooms({other.pk: 9}, "EMAIL")[other.pk] == 9


# --- what is accepted -----------------------------------------------------------------------------


@pytest.fixture
def brief(org, monkeypatch):
    """A message of TRANSACTIONAL is of use for twenty seconds, and no time passes."""
    monkeypatch.setattr(rates, "monotonic", lambda: 0.0)
    Category.objects.create(
        organization=org, name="TRANSACTIONAL", regime="OPT_OUT", expires_after=20
    )


@pytest.mark.promise("errors-22")
def test_messages_that_would_wait_too_long_are_rejected(api, org, accounts, brief):
    accounts("slow", rate=2)
    people = factories.contacts(org, 43)
    answer = api.bulk([message(person) for person in people[:42]])
    assert [each.get("error", {}).get("code") for each in answer.json()["results"]] == [
        *[None] * 40,  # two a second for twenty seconds
        *["RATE_LIMITED"] * 2,
    ]
    refused = api.send(message(people[42]), **{"Idempotency-Key": "k"})
    assert (refused.status_code, refused.json()) == (429, error("RATE_LIMITED", RATE_TOO_SLOW))
    assert refused["Retry-After"] == "1"
    assert Message.objects.count() == 40  # nothing was stored of what was refused
    Delivery.objects.update(status="SENT")
    TtlCache.clear_all()
    again = api.send(message(people[42]), **{"Idempotency-Key": "k"})
    assert (again.status_code, again.headers.get("Idempotent-Replayed")) == (202, None)


@pytest.mark.django_db(transaction=True)
def test_messages_of_a_bulk_decided_again_count_once(api, org, accounts, brief):
    accounts("slow", rate=2)
    people = factories.contacts(org, 30)
    assert api.send(message(people[0]), **{"Idempotency-Key": "k"}).status_code == 202
    IdempotencyKey.objects.update(expires_at=clock.now() - timedelta(1))
    # the row of the expired key is in the way of the first try
    answer = api.bulk([message(people[0], idempotencyKey="k"), *map(message, people[1:])])
    assert answer.json()["accepted"] == 30


def test_waiting_messages_are_counted_by_priority_and_organization(api, org, accounts, brief):
    Category.objects.create(organization=org, name="NEWS", regime="OPT_OUT", expires_after=20)
    factories.template(org, name="news", category="NEWS")
    accounts("slow", rate=1)
    news = {"category": "NEWS", "template": {"name": "news"}}
    people = factories.contacts(org, 20)
    bulk(api, people, **news)
    assert api.send(message(people[0], **news)).status_code == 429
    assert api.send(message(people[0])).status_code == 202  # it goes before the news
    test = Api(org, "TEST")
    assert test.send(message(people[0], **news)).status_code == 202
    later = {"mode": "AT", "at": (clock.now() + timedelta(hours=1)).isoformat()}
    assert api.send(message(people[0], schedule=later, **news)).status_code == 202


def test_another_channel_takes_messages_rejected_by_a_rate(api, org, accounts, brief):
    accounts("slow", rate=1)
    accounts("texts", channel="SMS")
    people = factories.contacts(org, 21)
    bulk(api, people[:20])
    both = message(people[20], channel=None, channels=["EMAIL", "SMS"])
    answer = api.send(both).json()
    assert (answer["status"], answer["resolvedChannel"]) == ("ACCEPTED", "SMS")
    shown = api.call("GET", f"/messages/{answer['messageId']}?include=trace").json()
    steps = shown["trace"][0]["steps"]
    assert [(step["channel"], step["result"]) for step in steps] == [
        ("EMAIL", "RATE_LIMITED"),
        ("SMS", "CHOSEN"),
    ]


def test_backlog_is_counted_by_one_statement_using_the_index(api, org, accounts, brief):
    people = factories.contacts(org, 50)
    accounts("slow", rate=10)

    def statements(count):
        TtlCache.clear_all()
        api.send(message(people[0]))  # all other caches are warm
        rates._counts.clear()
        with CaptureQueriesContext(connection) as captured:
            bulk(api, people[:count])
        return [
            each["sql"] for each in captured if "waiting" in each["sql"] and "LIMIT" in each["sql"]
        ]

    assert (len(statements(1)), len(statements(50))) == (1, 1)
    with connection.cursor() as cursor:
        values = {"priorities": [0, 1], "channel": "EMAIL", "organization": org.pk, "limit": 100}
        cursor.execute(f"EXPLAIN {backlogs.COUNT_READY}", values)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "delivery_ready" in plan or "_priority_organization" in plan, plan
