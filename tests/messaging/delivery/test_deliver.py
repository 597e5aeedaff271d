"""Sending a window: what goes out, what is recorded, with how many statements."""

import gc
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging import providers
from messaging.delivery import claims, deliver, sweeper
from messaging.delivery.outgoing import OutgoingDelivery
from messaging.domain.progress.receipts import Receipt
from messaging.feedback import receipts
from messaging.models import Attempt, Category, Delivery, ProviderAccount, Suppression
from rme.core.cache import TtlCache
from rme.core.outcomes import (
    Accepted,
    Fault,
    Gone,
    Misconfigured,
    Rejected,
    Retryable,
    Unknown,
)
from rme.core.provider import no_progress
from rme.transport import Transport
from tests import factories
from tests.messaging.delivery.deliver_scene import Scripted, delivery, due_now
from tests.messaging.delivery.slow_scene import wait_for
from tests.rest import events, message, work
from tests.sending import PROCESS

pytestmark = pytest.mark.django_db


@pytest.mark.promise("gates-3")
@pytest.mark.parametrize("count", [1, 50])
def test_statements_do_not_grow_with_the_window(api, org, count):
    people = factories.contacts(org, count)
    api.bulk([message(people[0])])
    work()  # so that caches are warm
    api.bulk([message(person) for person in people])
    with CaptureQueriesContext(connection) as captured:
        window = claims.claim(org.pk, "EMAIL", 0)
    # savepoint, by index, lock, by index, claim, release
    assert (len(window.deliveries), len(captured)) == (count, 6)
    found: list[Receipt] = []
    with CaptureQueriesContext(connection) as captured:
        deliver.deliver([window], Transport(), PROCESS, found.extend)
    # contacts; savepoint, lock, gates, attempts, release; savepoint, by index, outcomes, release
    assert len(captured) == 11
    with CaptureQueriesContext(connection) as captured:
        receipts.apply(found)
    # savepoint, by index, locks, by index, deliveries, by index, statuses, events, release
    assert len(captured) == 9


def test_windows_are_freed_without_the_cycle_collector(api, org):
    def count() -> int:
        return sum(type(each) is OutgoingDelivery for each in gc.get_objects())

    api.bulk([message(person) for person in factories.contacts(org, 3)])
    gc.collect()
    gc.disable()
    try:
        before = count()
        work()
        wait_for(lambda: count() <= before)  # the sending thread ends after the loop has gone on
    finally:
        gc.enable()


class Ending(Scripted):
    """A provider whose process is ended while it sends more than fifty."""

    kind = "ending"

    def send(self, dispatches, transport, progress=no_progress):
        outcomes = super().send(dispatches, transport, progress)
        if len(self.sent) > 50:
            sys.exit()
        return outcomes


def test_worker_killed_in_a_later_window_has_recorded_earlier_ones(api, org, script, monkeypatch):
    script("mail", Accepted())
    monkeypatch.setitem(providers.REGISTRY, Ending.kind, Ending)
    ProviderAccount.objects.update(kind=Ending.kind)
    api.bulk([message(person) for person in factories.contacts(org, 120)])
    with pytest.raises(SystemExit):
        work()
    found = Counter(Delivery.objects.values_list("status", flat=True))
    assert found == {"SENT": 50, "SENDING": 70}


def test_a_bulk_of_500_is_one_claim(api, org):
    people = factories.contacts(org, 500)
    api.bulk([message(person) for person in people])
    claim = claims.claim(org.pk, "EMAIL", 0)
    assert len(claim.deliveries) == 500
    deliver.deliver([claim], Transport(), PROCESS, receipts.apply)
    work()  # what did not fit into the claim's turn, on a busy machine
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


@pytest.mark.promise("routes-16", "faults-7")
def test_retryable_goes_to_the_next_account_at_once(api, org, script):
    script("first", Retryable("451 busy"), priority=1)
    script("second", Accepted(), priority=2)
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    work()
    assert [name for name, _ in Scripted.sent] == ["first", "second"]
    assert events(message_id) == ["accepted", "failover", "sent"]
    assert (delivery().status, delivery().provider) == ("SENT", "second")


@pytest.mark.promise("routes-17")
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


@pytest.mark.promise("routes-18")
def test_retry_after_is_honoured(api, org, script):
    script("only", Retryable("429", retry_after=300))
    api.send(message(factories.contact(org)))
    work()
    wait = delivery().due_at - datetime.now(UTC)
    assert timedelta(seconds=290) < wait < timedelta(seconds=310)


@pytest.mark.promise("routes-22")
def test_misconfigured_goes_to_the_next_account(api, org, script):
    script("first", Misconfigured("535"), priority=1)
    script("second", Accepted(), priority=2)
    api.send(message(factories.contact(org)))
    work()
    assert (delivery().status, delivery().provider) == ("SENT", "second")


@pytest.mark.promise("routes-25")
def test_unknown_never_fails_over(api, org, script):
    script("first", Unknown("no answer"), priority=1)
    script("second", Accepted(), priority=2)
    api.send(message(factories.contact(org)))
    work()
    assert [name for name, _ in Scripted.sent] == ["first"]
    assert (delivery().status, delivery().reason) == ("UNKNOWN", "UNKNOWN_OUTCOME")


@pytest.mark.promise("routes-28")
def test_unknown_is_sent_again_for_transactional(api, org, script):
    script("only", Unknown("no answer"), Accepted())
    api.send(message(factories.contact(org)))
    work()
    due_now()
    sweeper.resolve_unknown()
    assert delivery().status == "ACCEPTED"
    work()
    assert delivery().status == "SENT"


@pytest.mark.promise("routes-29")
def test_unknown_is_held_if_the_category_holds_unknown(api, org, script):
    script("only", Unknown("no answer"))
    Category.objects.create(organization=org, name="NEWS", regime="OPT_OUT", on_unknown="HOLD")
    factories.template(org, name="news", category="NEWS")
    TtlCache.clear_all()
    api.send(message(factories.contact(org), category="NEWS", template={"name": "news"}))
    work()
    due_now()
    sweeper.resolve_unknown()
    assert (delivery().status, delivery().due_at) == ("UNKNOWN", None)


@pytest.mark.promise("request-5", "routes-21")
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


@pytest.mark.promise("suppressions-5")
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


@pytest.mark.promise("routes-24")
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
