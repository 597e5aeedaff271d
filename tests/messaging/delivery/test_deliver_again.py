"""Sending a window: what is checked again, what waits, and what returns to the queue."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from messaging.consent import ledger
from messaging.delivery import claims, deliver, sweeper
from messaging.domain.statuses import Status
from messaging.feedback import receipts
from messaging.models import Attempt, Category, Delivery, Pause, Suppression
from rme.core.cache import TtlCache
from rme.core.outcomes import (
    Accepted,
)
from rme.transport import Transport
from tests import factories
from tests.messaging.delivery.deliver_scene import Scripted, delivery, due_now
from tests.rest import events, message, work
from tests.sending import PROCESS

pytestmark = pytest.mark.django_db


@pytest.mark.promise("gates-2")
def test_gates_are_checked_again_before_sending(api, org, script):
    script("mail", Accepted())
    ada, bob = factories.contacts(org, 2)
    api.bulk([message(ada), message(bob)])
    Suppression.objects.create(
        organization=org, channel="EMAIL", address=ada.email, reason="MANUAL"
    )
    ledger.record(
        org.pk,
        [ledger.ConsentDecision(str(bob.pk), "ALL", "ALL", "OPTED_OUT", "API", datetime.now(UTC))],
    )
    work()
    assert Scripted.sent == []
    assert sorted(Delivery.objects.values_list("status", "reason")) == [
        ("BLOCKED", "NO_CONSENT"),
        ("BLOCKED", "SUPPRESSED"),
    ]


@pytest.mark.promise("gates-10")
def test_paused_message_waits_and_is_sent_when_the_pause_ends(api, org, script):
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


@pytest.mark.promise("faults-12")
def test_transactional_goes_before_earlier_marketing(api, org, script):
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


@pytest.mark.promise("reliability-6", "faults-1")
def test_claim_of_a_dead_worker_is_reclaimed_and_its_writes_are_ignored(api, org, script):
    script("mail", Accepted())
    api.send(message(factories.contact(org)))
    stale = claims.claim(org.pk, "EMAIL", 0)
    due_now()  # its lease has ended
    sweeper.reclaim()
    assert delivery().status == "ACCEPTED"  # no attempt was written: nothing can have left
    fresh = claims.claim(org.pk, "EMAIL", 0)
    assert (stale.deliveries[0].fence, fresh.deliveries[0].fence) == (1, 2)
    deliver.deliver([fresh], Transport(), PROCESS, receipts.apply)
    assert delivery().status == "SENT"
    Delivery.objects.update(status=Status.SENDING)
    deliver.deliver([stale], Transport(), PROCESS, receipts.apply)
    assert (delivery().status, delivery().fence) == ("SENDING", 2)


@pytest.mark.promise("reliability-4")
def test_a_claim_with_an_attempt_is_in_doubt(api, org, script):
    script("mail", Accepted())
    api.send(message(factories.contact(org)))
    claimed = claims.claim(org.pk, "EMAIL", 0).deliveries[0]
    Attempt.objects.create(
        organization_id=org.pk,
        message_id=claimed.message_id,
        delivery_id=claimed.id,
        fence=claimed.fence,
        channel="EMAIL",
        provider="mail",
    )
    due_now()
    sweeper.reclaim()
    assert (delivery().status, delivery().reason) == ("UNKNOWN", "UNKNOWN_OUTCOME")


@pytest.mark.promise("push-sending-1")
def test_push_goes_to_all_devices_and_one_is_enough(api, org):
    person = factories.contact(org)
    factories.device(org, person, "simulator-reject-1")
    factories.device(org, person, "simulator-delivered-1")
    message_id = api.send(message(person, channel="PUSH")).json()["messageId"]
    work()
    assert sorted(Attempt.objects.values_list("outcome", flat=True)) == ["Accepted", "Rejected"]
    assert api.get(message_id)["status"] == "DELIVERED"


@pytest.mark.promise("answer-14")
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
    window = claims.claim(org.pk, "EMAIL", 0)
    deliver.deliver([window], Transport(), PROCESS, receipts.apply)


@pytest.mark.promise("events-6")
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


@pytest.mark.promise("request-6")
def test_first_delivered_falls_back_without_a_confirmation(api, org, script):
    script("mail", Accepted())
    script("sms", Accepted(), channel="SMS")
    body = message(factories.contact(org), channel=None, channels=["EMAIL", "SMS"])
    body |= {"strategy": "FIRST_DELIVERED", "fallbackAfter": 60}
    message_id = api.send(body).json()["messageId"]
    work()
    assert (sweeper.fall_back(), delivery().status, delivery().channel) == (0, "SENT", "EMAIL")
    due_now()
    assert (sweeper.fall_back(), work()) == (1, 1)
    assert events(message_id) == ["accepted", "sent", "fallback", "sent"]
    assert (delivery().status, delivery().channel, delivery().due_at) == ("SENT", "SMS", None)


@pytest.mark.promise("request-6")
def test_first_delivered_stays_where_a_confirmation_came(api, org, script):
    script("mail", Accepted("1", ("delivered",)))
    body = message(factories.contact(org), channel=None, channels=["EMAIL", "SMS"])
    api.send(body | {"strategy": "FIRST_DELIVERED", "fallbackAfter": 60})
    work()
    assert (delivery().status, delivery().due_at) == ("DELIVERED", None)


def test_category_deleted_after_accept_needs_consent(api, org, script):
    script("mail", Accepted())
    row = Category.objects.create(organization=org, name="NEWS", regime="OPT_OUT")
    factories.template(org, name="news", category="NEWS")
    TtlCache.clear_all()
    api.send(message(factories.contact(org), category="NEWS", template={"name": "news"}))
    row.delete()
    TtlCache.clear_all()
    work()
    assert (delivery().status, delivery().reason) == ("BLOCKED", "NO_CONSENT")
