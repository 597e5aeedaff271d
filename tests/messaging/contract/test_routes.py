"""The contract's rules for routes, waiting for a provider, and unknown outcomes."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from messaging.consent import ledger
from messaging.delivery import claims, sweeper
from messaging.delivery.accounts import routing
from messaging.delivery.outgoing import OutgoingDelivery
from messaging.domain.policy import BUILT_IN
from messaging.domain.statuses import Status
from messaging.feedback import receipts
from messaging.models import Delivery, ProviderAccount
from messaging.policy import organization_policy
from rme.core.outcomes import Accepted, Gone, Retryable, Unknown
from tests import factories
from tests.messaging.delivery.deliver_scene import Scripted, delivery, due_now
from tests.rest import events, message, work

pytestmark = pytest.mark.django_db


# --- routes ---------------------------------------------------------------------------------------


def account(org, name, channel, **fields):
    return ProviderAccount.objects.create(
        organization=org, name=name, kind="simulator", channel=channel, **fields
    )


@pytest.mark.promise("routes-1")
@pytest.mark.parametrize(
    ("channel", "fields", "provider"),
    [
        ("SMS", {"mobile": "+41791234567"}, "swiss"),
        ("SMS", {"mobile": "+12125550100"}, "world"),
        ("EMAIL", {"email": "ada@big.example"}, "big"),
        ("EMAIL", {"email": "ada@sub.big.example"}, "all"),
        ("EMAIL", {"email": "ada@notbig.example"}, "all"),
    ],
)
def test_account_takes_only_matching_addresses(api, org, channel, fields, provider):
    account(org, "swiss", "SMS", priority=1, match=["+41"])
    account(org, "world", "SMS", priority=2)
    account(org, "big", "EMAIL", priority=1, match=["big.example"])
    account(org, "all", "EMAIL", priority=2)
    answer = api.send(message(factories.contact(org, **fields), channel=channel))
    assert answer.json()["provider"] == provider


@pytest.mark.promise("routes-2")
def test_accounts_go_by_priority_and_by_weight_within_one(org):
    account(org, "last", "EMAIL", priority=3)
    account(org, "light", "EMAIL", priority=2, weight=1)
    account(org, "heavy", "EMAIL", priority=2, weight=3)
    account(org, "first", "EMAIL", priority=1)
    account(org, "paused", "EMAIL", priority=1, state="PAUSED")
    orders = Counter(
        tuple(
            each.name
            for each in routing.routes(organization_policy.of(org.pk), "EMAIL", "a@b.c", test=False)
        )
        for _ in range(4000)
    )
    assert set(orders) == {
        ("first", "heavy", "light", "last"),
        ("first", "light", "heavy", "last"),
    }
    assert 2800 < orders["first", "heavy", "light", "last"] < 3200  # three of four


@pytest.mark.promise("answer-5", "events-9")
def test_the_route_may_change_after_the_answer_and_the_message_shows_it(api, org, script):
    script("first", Retryable("451 busy"), priority=1)
    script("second", Accepted(), priority=2)
    sent = api.send(message(factories.contact(org))).json()
    work()
    shown = api.get(sent["messageId"])
    assert (sent["provider"], shown["provider"]) == ("first", "second")
    (failover,) = [event for event in shown["events"] if event["type"] == "failover"]
    assert failover == {
        "type": "failover",
        "at": failover["at"],
        "contactId": shown["recipients"][0]["contactId"],
        "channel": "EMAIL",
        "provider": "first",
        "detail": {"reason": "451 busy"},
    }


# --- waiting for a provider -----------------------------------------------------------------------


def waited(org, tries, after=None):
    """Return how many seconds a delivery waits after a number of tries."""
    (claimed,) = claims.claim(org.pk, "EMAIL", 0).deliveries
    Delivery.objects.update(status="ACCEPTED")
    now = datetime.now(UTC)
    delays = []
    for _ in range(400):
        sending = OutgoingDelivery(claimed._replace(tries=tries), BUILT_IN["TRANSACTIONAL"])
        sending.back_off(now=now, retry_after=after)
        assert (sending.status, sending.waiting, sending.tries) == (
            Status.ACCEPTED,
            "PROVIDER",
            tries + 1,
        )
        delays.append((sending.due_at - now).total_seconds())
    return delays


@pytest.mark.promise("routes-17")
@pytest.mark.parametrize(
    ("tries", "most"), [(0, 1), (1, 2), (5, 32), (9, 512), (10, 900), (60, 900)]
)
def test_the_wait_doubles_with_full_jitter_to_a_quarter_of_an_hour(api, org, tries, most):
    api.send(message(factories.contact(org)))
    delays = waited(org, tries)
    assert 0 <= min(delays) < most * 0.1
    assert most * 0.9 < max(delays) <= most


@pytest.mark.promise("routes-20")
def test_a_wait_past_the_expiry_ends_as_a_provider_error(api, org, script):
    script("only", Retryable("429 slow down", retry_after=300))
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    Delivery.objects.update(expires_at=datetime.now(UTC) + timedelta(seconds=60))
    work()
    shown = api.get(message_id)
    assert (shown["status"], shown["error"]) == (
        "FAILED",
        {"code": "PROVIDER_ERROR", "message": "429 slow down"},
    )
    assert events(message_id) == ["accepted", "failed"]


# --- unknown outcomes -----------------------------------------------------------------------------


@pytest.mark.promise("routes-26")
def test_an_unknown_outcome_waits_a_minute_for_a_receipt(api, org, script):
    script("only", Unknown("no answer"))
    api.send(message(factories.contact(org)))
    work()
    wait = delivery().due_at - datetime.now(UTC)
    assert timedelta(seconds=55) < wait <= timedelta(seconds=60)
    assert (sweeper.resolve_unknown(), delivery().status) == (0, "UNKNOWN")


@pytest.mark.promise("routes-29")
def test_marketing_goes_to_manual_review_and_a_late_receipt_ends_it(api, org, script):
    script("only", Unknown("no answer"))
    person = factories.contact(org)
    yes = ledger.ConsentDecision(str(person.pk), "EMAIL", "MARKETING", "OPTED_IN", "API", None)
    ledger.record(org.pk, [yes])
    content = {"subject": "News", "text": "All of them"}
    body = message(person, category="MARKETING", template=None, content=content)
    message_id = api.send(body).json()["messageId"]
    work()
    due_now()
    sweeper.resolve_unknown()
    assert (delivery().status, delivery().due_at) == ("UNKNOWN", None)
    assert len(Scripted.sent) == 1
    receipts.apply([receipts.Receipt(delivery().pk, "delivered")])
    assert delivery().status == "DELIVERED"
    assert events(message_id) == ["accepted", "sent", "delivered"]


@pytest.mark.promise("routes-21")
def test_fallback_without_a_channel_left_fails(api, org, script):
    script("mail", Gone("dead"))
    script("sms", Gone("dead"), channel="SMS")
    body = message(factories.contact(org), channel=None, channels=["EMAIL", "SMS"])
    message_id = api.send(body).json()["messageId"]
    work()
    assert (delivery().status, delivery().reason) == ("FAILED", "PROVIDER_ERROR")
    assert events(message_id) == ["accepted", "fallback", "failed"]
