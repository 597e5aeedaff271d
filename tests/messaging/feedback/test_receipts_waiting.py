"""What providers report of an earlier attempt while the delivery waits to be sent again."""

from datetime import UTC, datetime, timedelta

import pytest

from messaging.delivery import sweeper
from messaging.domain.progress.receipts import Receipt
from messaging.domain.statuses import EventType
from messaging.feedback import callbacks, receipts, tracking
from messaging.feedback.receipts import AccountReceipt
from messaging.models import (
    Attempt,
    Callback,
    CallbackLogEntry,
    ConsentEntry,
    Delivery,
    Pause,
    Suppression,
)
from rme.core.cache import TtlCache
from rme.core.provider import DeliveryReceipt
from tests import factories
from tests.fakes import providers as fakes
from tests.messaging.feedback.sms_scene import attempt, settle, state
from tests.rest import events, message, work

pytestmark = pytest.mark.django_db
BOTH = {
    "channel": None,
    "channels": ["SMS", "EMAIL"],
    "strategy": "FIRST_DELIVERED",
    "fallbackAfter": 3600,
}


def report(scene, word, attempt_id=None):
    call = fakes.report(scene.kind, scene.url, attempt_id or attempt(), word)
    assert scene.call(call) == 200
    settle()


def due():
    Delivery.objects.update(due_at=datetime.now(UTC) - timedelta(seconds=1))


def pause(org, channel):
    Pause.objects.create(organization=org, channel=channel)
    TtlCache.clear_all()


def resume():
    Pause.objects.all().delete()
    TtlCache.clear_all()
    due()


@pytest.fixture
def resent(org, api, scene):
    """Return a message that is to be sent again, since its outcome is unknown, and waits."""
    scene.status = 500
    message_id = scene.send(api, factories.contact(org))
    assert state() == "UNKNOWN"
    due()
    sweeper.resolve_unknown()
    pause(org, "SMS")
    work(scene.transport)  # claimed once more, and put back
    row = Delivery.objects.get()
    assert (row.status, row.waiting, row.fence) == ("ACCEPTED", "PAUSED", 2)
    scene.status = 201
    return message_id


@pytest.fixture
def fallen_back(org, api, scene):
    """Return a message by SMS that was not confirmed in time, and waits to be sent by email."""
    message_id = scene.send(api, factories.contact(org), **BOTH)
    due()
    assert sweeper.fall_back() == 1
    pause(org, "EMAIL")
    work()
    row = Delivery.objects.get()
    assert (row.status, row.channel, row.waiting) == ("ACCEPTED", "EMAIL", "PAUSED")
    return message_id


def nothing_leaves(scene):
    """Return whether nothing is sent once the pause has ended."""
    before = Attempt.objects.count()
    resume()
    work(scene.transport)
    return Attempt.objects.count() == before


def test_a_confirmation_stops_a_resend(scene, resent):
    report(scene, "delivered")
    row = Delivery.objects.get()
    found = (row.status, row.channel, row.provider, row.account_id, row.waiting, row.due_at)
    assert found == ("DELIVERED", "SMS", "twilio", scene.account.pk, None, None)
    assert events(resent) == ["accepted", "deferred", "sent", "delivered"]
    assert nothing_leaves(scene)


def test_a_confirmation_stops_a_fallback(scene, fallen_back):
    report(scene, "delivered")
    row = Delivery.objects.get()
    assert (row.status, row.channel, row.provider) == ("DELIVERED", "SMS", "twilio")
    assert events(fallen_back) == ["accepted", "sent", "fallback", "delivered"]
    assert nothing_leaves(scene)
    report(scene, "delivered")
    assert len(events(fallen_back)) == 4


@pytest.mark.parametrize("word", ["sent", "failed", "dead"])
def test_report_without_confirmation_does_not_stop_the_resend(scene, resent, word):
    report(scene, word)
    assert (state(), Callback.objects.get().tries) == ("ACCEPTED", 1)
    assert Callback.objects.get().due_at is not None
    assert events(resent) == ["accepted", "deferred"]
    assert not nothing_leaves(scene)
    assert state() == "SENT"


def test_a_failure_after_the_confirmation_still_counts(scene, resent):
    """Later claims that made no attempt do not make it the failure of a former one."""
    report(scene, "delivered")
    report(scene, "dead")
    assert state() == "DELIVERED"
    assert Suppression.objects.get().reason == "HARD_BOUNCE"


def test_an_open_stops_a_fallback(org, api, scene):
    person = factories.contact(org)
    api.send(message(person, **{**BOTH, "channels": ["EMAIL", "SMS"]}))
    work()
    row = Delivery.objects.get()
    Delivery.objects.update(status="SENT")  # the simulator reported at once that it arrived
    due()
    assert sweeper.fall_back() == 1
    assert tracking.store(row.pk, "open", machine=False)
    assert tracking.apply_due() == 1
    row.refresh_from_db()
    assert (row.status, row.channel) == ("DELIVERED", "EMAIL")


def test_confirmation_of_a_bounced_email_does_not_stop_the_fallback(org, api):
    api.send(message(factories.contact(org), **{**BOTH, "channels": ["EMAIL", "SMS"]}))
    work()
    row = Delivery.objects.get()
    Delivery.objects.update(status="SENT")
    due()
    receipts.apply([Receipt(row.pk, EventType.BOUNCED)])
    assert sweeper.fall_back() == 1
    receipts.apply([Receipt(row.pk, EventType.DELIVERED, channel="EMAIL")])
    row.refresh_from_db()
    assert (row.status, row.channel) == ("ACCEPTED", "SMS")


def test_an_unsubscription_is_recorded_while_the_delivery_waits(scene, resent):
    reported = DeliveryReceipt(attempt(), EventType.UNSUBSCRIBED)
    key = attempt()
    found = receipts.apply_provider_receipts({key: [AccountReceipt(scene.account.pk, reported)]})
    assert (found.applied, found.early, state()) == ({key}, set(), "ACCEPTED")
    assert ConsentEntry.objects.get().status == "OPTED_OUT"


def test_receipt_deferred_for_a_day_is_not_logged_as_applied(scene, resent):
    report(scene, "sent")
    Callback.objects.update(
        due_at=datetime.now(UTC), received_at=datetime.now(UTC) - timedelta(days=2)
    )
    assert callbacks.apply_due()[0] == 1
    entry = CallbackLogEntry.objects.get()
    assert (entry.verdict, entry.detail) == ("NO_NEWS", "put off for a day")
    assert Callback.objects.get().due_at is None


# --- unknown outcomes with channels left ----------------------------------------------------------


@pytest.fixture
def unknown(org, api, scene):
    """Return a message by SMS whose outcome is unknown, with a channel left."""
    scene.status = 500
    message_id = scene.send(api, factories.contact(org), **BOTH)
    assert state() == "UNKNOWN"
    return message_id


@pytest.mark.parametrize("word", ["failed", "dead"])
def test_a_failure_ends_an_unknown_outcome_by_the_next_channel(scene, unknown, word):
    report(scene, word)
    assert sweeper.fall_back() == 1
    row = Delivery.objects.get()
    assert (row.status, row.channel) == ("ACCEPTED", "EMAIL")
    assert events(unknown)[-1] == "fallback"


def test_unknown_outcome_reported_as_sent_falls_back_unless_confirmed(scene, unknown):
    report(scene, "sent")
    row = Delivery.objects.get()
    assert (row.status, sweeper.fall_back()) == ("SENT", 0)
    left = (row.due_at - datetime.now(UTC)).total_seconds()
    assert 3500 < left <= 3601
    due()
    assert sweeper.fall_back() == 1


@pytest.mark.parametrize(("word", "status"), [("failed", "FAILED"), ("sent", "SENT")])
def test_receipt_causes_no_fallback_without_first_delivered(org, api, scene, word, status):
    scene.status = 500
    scene.send(api, factories.contact(org), channel=None, channels=["SMS", "EMAIL"])
    report(scene, word)
    row = Delivery.objects.get()
    assert (row.status, row.due_at) == (status, None)
