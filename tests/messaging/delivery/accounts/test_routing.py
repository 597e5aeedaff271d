"""The order of provider accounts, and how sends go on when one fails."""

import time
from collections import Counter

import pytest

from messaging import providers
from messaging.delivery import claims, deliver
from messaging.delivery.accounts import CircuitState, circuits
from messaging.domain.channels import Channel
from messaging.feedback import receipts
from messaging.models import Attempt, Delivery, ProviderAccount
from rme.core.cache import TtlCache
from rme.core.db import clock
from rme.core.outcomes import Accepted, Misconfigured, Retryable
from rme.core.provider import Provider, ProviderSettings
from rme.transport import Transport
from tests import factories
from tests.rest import message, work
from tests.sending import PROCESS


class Scripted(Provider):
    """Answers what the test has set for its account, and counts."""

    kind = "constant"  # another kind than the scripted one: equal settings share a provider
    label = "Constant"
    channels = frozenset(Channel)
    answers: dict[str, object] = {}
    sent: Counter[str] = Counter()

    class Settings(ProviderSettings):
        name: str

    def send(self, dispatches, transport, progress=None):
        self.sent[self.settings.name] += len(dispatches)
        return [self.answers[self.settings.name]] * len(dispatches)


@pytest.fixture
def scripted(org):
    """Register the provider; gives a function that adds an account with its answer."""
    providers.REGISTRY["constant"] = Scripted
    Scripted.answers, Scripted.sent = {}, Counter()

    def add(name, answer, channel="EMAIL", **fields):
        Scripted.answers[name] = answer
        return ProviderAccount.objects.create(
            organization=org,
            name=name,
            kind="constant",
            channel=channel,
            credentials=f'{{"name": "{name}"}}',
            **fields,
        )

    yield add
    del providers.REGISTRY["constant"]


def send(api, people):
    api.bulk([message(person) for person in people])
    work()


@pytest.mark.promise("routes-7")
@pytest.mark.django_db
def test_failing_account_is_avoided_after_one_window(api, org, scripted):
    scripted("bad", Retryable("down"), priority=1)
    scripted("good", Accepted("1"), priority=2)
    send(api, factories.contacts(org, 120))
    # The first window of 50 finds out; of the next, nothing goes there.
    assert Scripted.sent == {"bad": 50, "good": 120}
    assert set(Delivery.objects.values_list("status", flat=True)) == {"SENT"}


@pytest.mark.promise("routes-10")
@pytest.mark.django_db
def test_rejected_account_is_avoided_until_it_recovers(api, org, scripted, settings):
    settings.CIRCUIT_OPEN_SECONDS = 0.0
    row = scripted("bad", Misconfigured("wrong key"), priority=1)
    scripted("good", Accepted("1"), priority=2)
    people = factories.contacts(org, 20)
    send(api, people)
    Scripted.answers["bad"] = Accepted("1")
    Scripted.sent.clear()
    send(api, people)
    assert Scripted.sent == {"bad": 5, "good": 15}  # half open: five may try
    assert circuits.read([row.pk])[row.pk].state is CircuitState.CLOSED
    Scripted.sent.clear()
    send(api, people)
    assert Scripted.sent == {"bad": 20}


@pytest.mark.django_db
def test_only_account_is_tried_despite_its_open_circuit(api, org, scripted):
    row = scripted("only", Retryable("down"))
    people = factories.contacts(org, 25)
    send(api, people)
    assert circuits.read([row.pk])[row.pk].state is CircuitState.OPEN
    Scripted.answers["only"] = Accepted("1")
    message_id = api.send(message(people[0])).json()["messageId"]
    until = time.monotonic() + 20
    while api.get(message_id)["status"] != "SENT" and time.monotonic() < until:
        Delivery.objects.filter(status="ACCEPTED").update(due_at=clock.now())
        work()  # some at a time
        time.sleep(0.1)
    assert api.get(message_id)["status"] == "SENT"


@pytest.mark.django_db
def test_account_with_retry_after_is_tried_after_a_failed_one(api, org, scripted):
    scripted("busy", Retryable("busy", 60.0), priority=1)
    scripted("other", Retryable("down"), priority=2)
    (person,) = factories.contacts(org, 1)
    send(api, [person])
    Scripted.answers["other"] = Accepted("1")
    Scripted.sent.clear()
    send(api, [person])
    assert set(Scripted.sent) == {"other"}


def _until_the_end(heard, own):
    """Return the commands sent to one Redis database; other tests use other databases of it."""
    said = []
    while not said or said[-1] != "ECHO the end":
        one = heard.next_command()
        if one["db"] == own:
            said.append(one["command"])
    return said


@pytest.mark.django_db
@pytest.mark.xdist_group("scripts")  # one forgotten meanwhile would be loaded again
@pytest.mark.parametrize(("believed", "asked"), [(0.0, 2), (600.0, 0)])
def test_calls_to_redis_do_not_grow_with_the_sends(
    api, org, scripted, redis, monkeypatch, believed, asked
):
    monkeypatch.setattr(circuits._known_closed, "seconds", believed)
    scripted("one", Accepted("1"))
    scripted("two", Accepted("1"))

    own = redis.connection_pool.connection_kwargs["db"]

    def calls(count):
        api.bulk([message(person) for person in factories.contacts(org, count)])
        while not (claim := claims.claim(org.pk, "EMAIL", 0)).deliveries:
            time.sleep(0.01)  # accepted by a clock that may be a trifle before the database's
        with redis.monitor() as heard:
            deliver.deliver([claim], Transport(), PROCESS, receipts.apply)
            redis.echo("the end")
            said = _until_the_end(heard, own)
        return [command for command in said if command.startswith("EVAL")]

    calls(1)
    # one look at the beginning and one report a window, if nobody knows that all is well
    for count in (1, 50):
        made = calls(count)
        assert len(made) == asked, made
        assert Attempt.objects.filter(outcome="Accepted").count() >= count


@pytest.mark.promise("routes-13")
@pytest.mark.django_db
def test_health_shows_the_circuit(api, org, scripted):
    scripted("bad", Misconfigured("wrong key"))
    send(api, factories.contacts(org, 1))
    shown = api.call("GET", "/health").json()["providers"]
    circuits = [(each["name"], each["channel"], each["circuit"]) for each in shown]
    assert circuits == [
        ("bad", "EMAIL", "OPEN"),
        ("simulator", "SMS", "CLOSED"),
        ("simulator", "PUSH", "CLOSED"),
    ]


# --- the route that is named when a message is accepted -------------------------------------------


@pytest.mark.django_db
def test_accept_names_a_healthy_account(api, org, scripted):
    scripted("bad", Misconfigured("wrong key"), priority=1)
    scripted("good", Accepted("1"), priority=2)
    first, second = factories.contacts(org, 2)
    assert api.send(message(first)).json()["provider"] == "bad"
    work()
    TtlCache.clear_all()  # how accounts stand is kept for a second
    assert api.send(message(second)).json()["provider"] == "good"


@pytest.mark.django_db
def test_accepting_uses_up_no_probes(api, org, scripted, settings):
    settings.CIRCUIT_OPEN_SECONDS = 0.0
    scripted("bad", Misconfigured("wrong key"), priority=1)
    scripted("good", Accepted("1"), priority=2)
    people = factories.contacts(org, 8)
    send(api, people[:1])
    Scripted.answers["bad"] = Accepted("1")
    Scripted.sent.clear()
    for person in people:
        TtlCache.clear_all()
        api.send(message(person))
    work()
    assert Scripted.sent == {"bad": 5, "good": 3}


@pytest.mark.promise("routes-12")
@pytest.mark.django_db
def test_push_uses_an_account_matching_the_device(api, org, scripted):
    scripted("apple", Accepted("1"), channel="PUSH", priority=1, match=["IOS"])
    (person,) = factories.contacts(org, 1)
    factories.device(org, person)  # ANDROID
    push = message(person, channel="PUSH")
    assert api.send(push).json()["error"]["message"] == "No provider account for push."
    scripted("google", Accepted("1"), channel="PUSH", priority=2, match=["ANDROID"])
    TtlCache.clear_all()
    assert api.send(push).json()["provider"] == "google"
    work()
    assert Scripted.sent == {"google": 1}
