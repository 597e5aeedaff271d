"""Sending a window: what goes out, what is recorded, with how many statements."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging import claiming, consent, deliver, providers, receipts, schedule
from messaging.models import Attempt, Category, Delivery, Pause, ProviderAccount, Suppression
from messaging.providers.base import Provider
from messaging.states import Status
from rme.core.cache import TtlCache
from rme.core.channels import Channel
from rme.core.outcomes import (
    Accepted,
    Fault,
    Gone,
    Misconfigured,
    Rejected,
    Retryable,
    Unknown,
)
from rme.core.transport import Transport
from tests import factories
from tests.rest import events, message, work

pytestmark = pytest.mark.django_db


class Scripted(Provider):
    """A provider at the far end of no wire: answers what its account is told to, and counts."""

    kind = "scripted"
    label = "Scripted"
    channels = frozenset(Channel)
    answers: dict[str, list] = {}
    sent: list[tuple[str, str]] = []

    class Settings(providers.base.ProviderSettings):
        name: str

    def send(self, dispatches, transport):
        script = self.answers[self.settings.name]
        outcomes = []
        for dispatch in dispatches:
            self.sent.append((self.settings.name, dispatch.content.to))
            outcomes.append(script.pop(0) if len(script) > 1 else script[0])
        return outcomes


@pytest.fixture
def script(org):
    """Register the scripted provider; gives a function that adds an account with its answers."""
    providers.REGISTRY["scripted"] = Scripted
    Scripted.sent, Scripted.answers = [], {}

    def add(name, *answers, **fields):
        Scripted.answers[name] = list(answers)
        return ProviderAccount.objects.create(
            organization=org,
            name=name,
            kind="scripted",
            channel=fields.pop("channel", "EMAIL"),
            credentials=f'{{"name": "{name}"}}',
            **fields,
        )

    yield add
    del providers.REGISTRY["scripted"]


def delivery():
    return Delivery.objects.get()


def due_now():
    Delivery.objects.update(due_at=datetime.now(UTC) - timedelta(seconds=1))


@pytest.mark.parametrize("count", [1, 50])
def test_statements_do_not_grow_with_the_window(api, org, count):
    people = factories.contacts(org, count)
    api.bulk([message(people[0])])
    work()  # so that caches are warm
    api.bulk([message(person) for person in people])
    with CaptureQueriesContext(connection) as captured:
        window = claiming.claim(org.pk, "EMAIL", 0)
    assert (len(window.deliveries), len(captured)) == (count, 1)
    with CaptureQueriesContext(connection) as captured:
        found = deliver.deliver(window, Transport())
    # contacts; savepoint, lock, gates, attempts, release; savepoint, what became of it, release
    assert len(captured) == 9
    with CaptureQueriesContext(connection) as captured:
        receipts.apply(found)
    assert len(captured) == 5


def test_a_bulk_of_500_is_three_claims(api, org):
    people = factories.contacts(org, 500)
    api.bulk([message(person) for person in people])
    assert work() == 3
    assert set(Delivery.objects.values_list("status", flat=True)) == {"DELIVERED"}
    assert Attempt.objects.filter(outcome="Accepted").count() == 500


def test_sent_is_recorded(api, org, script):
    script("mail", Accepted("queue-1"))
    person = factories.contact(org, email="Ada@Example.com")
    message_id = api.send(message(person)).json()["messageId"]
    work()
    assert Scripted.sent == [("mail", "ada@example.com")]
    assert events(message_id) == ["accepted", "sent"]
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.provider, attempt.provider_id, attempt.fence) == (
        "Accepted",
        "mail",
        "queue-1",
        1,
    )
    assert (delivery().status, delivery().due_at, delivery().fence) == ("SENT", None, 1)


def test_retryable_goes_to_the_next_account_at_once(api, org, script):
    script("first", Retryable("451 busy"), priority=1)
    script("second", Accepted(), priority=2)
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    work()
    assert [name for name, _ in Scripted.sent] == ["first", "second"]
    assert events(message_id) == ["accepted", "failover", "sent"]
    assert (delivery().status, delivery().provider) == ("SENT", "second")


def test_all_accounts_down_waits_and_ends_with_the_expiry(api, org, script, settings):
    settings.BACKOFF_SECONDS = 900  # the jitter may not end within this test
    script("only", Retryable("451 busy"))
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    work()
    assert (delivery().status, delivery().waiting, delivery().tries) == ("ACCEPTED", "PROVIDER", 1)
    assert events(message_id) == ["accepted", "deferred"]
    Delivery.objects.update(expires_at=datetime.now(UTC) + timedelta(milliseconds=1))
    due_now()
    work()
    assert (delivery().status, delivery().reason) == ("FAILED", "PROVIDER_ERROR")


def test_retry_after_is_honoured(api, org, script):
    script("only", Retryable("429", retry_after=300))
    api.send(message(factories.contact(org)))
    work()
    wait = delivery().due_at - datetime.now(UTC)
    assert timedelta(seconds=290) < wait < timedelta(seconds=310)


def test_misconfigured_goes_to_the_next_account(api, org, script):
    script("first", Misconfigured("535"), priority=1)
    script("second", Accepted(), priority=2)
    api.send(message(factories.contact(org)))
    work()
    assert (delivery().status, delivery().provider) == ("SENT", "second")


def test_unknown_never_fails_over(api, org, script):
    script("first", Unknown("no answer"), priority=1)
    script("second", Accepted(), priority=2)
    api.send(message(factories.contact(org)))
    work()
    assert [name for name, _ in Scripted.sent] == ["first"]
    assert (delivery().status, delivery().reason) == ("UNKNOWN", "UNKNOWN_OUTCOME")


def test_unknown_is_sent_again_for_transactional(api, org, script):
    script("only", Unknown("no answer"), Accepted())
    api.send(message(factories.contact(org)))
    work()
    due_now()
    schedule.resolve_unknown()
    assert delivery().status == "ACCEPTED"
    work()
    assert delivery().status == "SENT"


def test_unknown_is_held_where_the_category_says_so(api, org, script):
    script("only", Unknown("no answer"))
    Category.objects.create(organization=org, name="NEWS", regime="OPT_OUT", on_unknown="HOLD")
    factories.template(org, name="news", category="NEWS")
    TtlCache.clear_all()
    api.send(message(factories.contact(org), category="NEWS", template={"name": "news"}))
    work()
    due_now()
    schedule.resolve_unknown()
    assert (delivery().status, delivery().due_at) == ("UNKNOWN", None)


@pytest.mark.parametrize("outcome", [Rejected("550 no such user", hard=True), Gone("dead")])
def test_a_dead_recipient_falls_back_to_the_next_channel(api, org, script, outcome):
    script("mail", outcome)
    script("sms", Accepted(), channel="SMS")
    person = factories.contact(org)
    body = message(person, channel=None, channels=["EMAIL", "SMS"])
    message_id = api.send(body).json()["messageId"]
    work()
    assert Scripted.sent == [("mail", person.email), ("sms", person.mobile)]
    assert events(message_id)[-2:] == ["fallback", "sent"]
    assert (delivery().channel, delivery().status) == ("SMS", "SENT")


def test_a_hard_bounce_suppresses_the_address(api, org, script):
    script("mail", Rejected("550 5.1.1", hard=True))
    person = factories.contact(org)
    message_id = api.send(message(person)).json()["messageId"]
    work()
    assert delivery().status == "FAILED"
    assert events(message_id) == ["accepted", "bounced", "failed"]
    assert Suppression.objects.values_list("address", "channel", "reason").get() == (
        person.email,
        "EMAIL",
        "HARD_BOUNCE",
    )
    assert api.send(message(person)).status_code == 403


def test_refused_content_fails_and_tries_no_other(api, org, script):
    script("first", Rejected("554 spam", Fault.CONTENT), priority=1)
    script("second", Accepted(), priority=2)
    api.send(message(factories.contact(org)))
    work()
    assert [name for name, _ in Scripted.sent] == ["first"]
    assert (delivery().status, delivery().reason, delivery().detail) == (
        "FAILED",
        "PROVIDER_ERROR",
        "554 spam",
    )


def test_gates_are_looked_at_again_before_it_leaves(api, org, script):
    script("mail", Accepted())
    ada, bob = factories.contacts(org, 2)
    api.bulk([message(ada), message(bob)])
    Suppression.objects.create(
        organization=org, channel="EMAIL", address=ada.email, reason="MANUAL"
    )
    consent.record(
        org.pk,
        [consent.Decision(str(bob.pk), "ALL", "ALL", "OPTED_OUT", "API", datetime.now(UTC))],
    )
    work()
    assert Scripted.sent == []
    assert sorted(Delivery.objects.values_list("status", "reason")) == [
        ("BLOCKED", "NO_CONSENT"),
        ("BLOCKED", "SUPPRESSED"),
    ]


def test_what_is_paused_waits_and_goes_when_the_pause_ends(api, org, script):
    script("mail", Accepted())
    pause = Pause.objects.create(organization=org, channel="EMAIL", reason="maintenance")
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    work()
    assert api.get(message_id)["recipients"][0]["waiting"] == "PAUSED"
    assert Scripted.sent == []
    pause.delete()
    due_now()
    work()
    assert delivery().status == "SENT"


def test_too_late_is_expired(api, org, script):
    script("mail", Accepted())
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    Delivery.objects.update(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    work()
    assert Scripted.sent == []
    assert events(message_id) == ["accepted", "expired"]


def test_transactional_goes_before_what_came_earlier(api, org, script):
    script("mail", Accepted())
    people = factories.contacts(org, 60)
    Category.objects.create(organization=org, name="NEWS", regime="OPT_OUT")
    factories.template(org, name="news", category="NEWS")
    TtlCache.clear_all()
    news = {"category": "NEWS", "template": {"name": "news"}}
    api.bulk([message(person, **news) for person in people])
    api.send(message(people[0]))
    work()
    assert Scripted.sent[0] == ("mail", people[0].email)
    assert len(Scripted.sent) == 61


def test_a_dead_workers_claim_is_taken_back_and_it_cannot_write(api, org, script):
    script("mail", Accepted())
    api.send(message(factories.contact(org)))
    stale = claiming.claim(org.pk, "EMAIL", 0)
    due_now()  # its lease has ended
    schedule.reclaim()
    assert delivery().status == "ACCEPTED"  # no attempt was written: nothing can have left
    fresh = claiming.claim(org.pk, "EMAIL", 0)
    assert (stale.deliveries[0].fence, fresh.deliveries[0].fence) == (1, 2)
    deliver.deliver(fresh, Transport())
    assert delivery().status == "SENT"
    Delivery.objects.update(status=Status.SENDING)
    deliver.deliver(stale, Transport())
    assert (delivery().status, delivery().fence) == ("SENDING", 2)


def test_a_claim_with_an_attempt_is_in_doubt(api, org, script):
    script("mail", Accepted())
    api.send(message(factories.contact(org)))
    claimed = claiming.claim(org.pk, "EMAIL", 0).deliveries[0]
    Attempt.objects.create(
        organization_id=org.pk,
        message_id=claimed.message_id,
        delivery_id=claimed.id,
        fence=claimed.fence,
        channel="EMAIL",
        provider="mail",
    )
    due_now()
    schedule.reclaim()
    assert (delivery().status, delivery().reason) == ("UNKNOWN", "UNKNOWN_OUTCOME")


def test_push_goes_to_all_devices_and_one_is_enough(api, org):
    person = factories.contact(org)
    factories.device(org, person, "simulator-reject-1")
    factories.device(org, person, "simulator-delivered-1")
    message_id = api.send(message(person, channel="PUSH")).json()["messageId"]
    work()
    assert sorted(Attempt.objects.values_list("outcome", flat=True)) == ["Accepted", "Rejected"]
    assert api.get(message_id)["status"] == "DELIVERED"


@pytest.mark.parametrize(
    ("word", "status", "types"),
    [
        ("delivered", "DELIVERED", ["accepted", "sent", "delivered", "open"]),
        ("bounce", "FAILED", ["accepted", "sent", "bounced"]),
        ("complaint", "DELIVERED", ["accepted", "sent", "delivered", "complained"]),
        ("down", "ACCEPTED", ["accepted", "deferred"]),
        ("reject", "FAILED", ["accepted", "failed"]),
        ("unknown", "UNKNOWN", ["accepted"]),
        ("anybody", "DELIVERED", ["accepted", "sent", "delivered"]),
    ],
)
def test_the_simulator_acts_out_outcomes(api, org, word, status, types):
    person = factories.contact(org, email=f"{word}@simulator.rme.test")
    message_id = api.send(message(person)).json()["messageId"]
    work_once(org)
    assert (api.get(message_id)["status"], events(message_id)) == (status, types)


def work_once(org):
    window = claiming.claim(org.pk, "EMAIL", 0)
    receipts.apply(deliver.deliver(window, Transport()))


def test_receipts_in_any_order_end_the_same(api, org, script):
    script("mail", Accepted())
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    work()
    one = delivery().pk
    for kinds in (["open"], ["delivered", "sent"], ["open", "delivered"]):
        receipts.apply([receipts.Receipt(one, kind) for kind in kinds])
    assert events(message_id) == ["accepted", "sent", "delivered", "open"]
    assert delivery().status == "DELIVERED"
    receipts.apply([receipts.Receipt(UUID(int=0), "delivered")])  # nobody's: dropped
    receipts.apply([receipts.Receipt(one, "bounced")])
    assert delivery().status == "FAILED"


def test_first_delivered_moves_on_when_no_confirmation_comes(api, org, script):
    script("mail", Accepted())
    script("sms", Accepted(), channel="SMS")
    body = message(factories.contact(org), channel=None, channels=["EMAIL", "SMS"])
    body |= {"strategy": "FIRST_DELIVERED", "fallbackAfter": 60}
    message_id = api.send(body).json()["messageId"]
    work()
    assert (schedule.fall_back(), delivery().status, delivery().channel) == (0, "SENT", "EMAIL")
    due_now()
    assert (schedule.fall_back(), work()) == (1, 1)
    assert events(message_id) == ["accepted", "sent", "fallback", "sent"]
    assert (delivery().status, delivery().channel, delivery().due_at) == ("SENT", "SMS", None)


def test_first_delivered_stays_where_a_confirmation_came(api, org, script):
    script("mail", Accepted("1", ("delivered",)))
    body = message(factories.contact(org), channel=None, channels=["EMAIL", "SMS"])
    api.send(body | {"strategy": "FIRST_DELIVERED", "fallbackAfter": 60})
    work()
    assert (delivery().status, delivery().due_at) == ("DELIVERED", None)


def test_a_category_deleted_meanwhile_needs_consent(api, org, script):
    script("mail", Accepted())
    row = Category.objects.create(organization=org, name="NEWS", regime="OPT_OUT")
    factories.template(org, name="news", category="NEWS")
    TtlCache.clear_all()
    api.send(message(factories.contact(org), category="NEWS", template={"name": "news"}))
    row.delete()
    TtlCache.clear_all()
    work()
    assert (delivery().status, delivery().reason) == ("BLOCKED", "NO_CONSENT")
