"""What providers report: any order, any number of times, early and late, the same state."""

from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from messaging.delivery import claims, deliver, sweeper
from messaging.domain.progress.receipts import Receipt
from messaging.domain.progress.transitions import Transition
from messaging.domain.statuses import Status
from messaging.feedback import callbacks, receipts
from messaging.models import Attempt, Callback, CallbackLogEntry, Delivery, Event, Suppression
from messaging.store.transitions import apply_transitions
from rme.core import ids
from rme.transport import Transport
from tests import factories
from tests.fakes import providers as fakes
from tests.fakes.providers import SETTINGS
from tests.messaging.feedback.sms_scene import Scene, attempt, settle, state
from tests.messaging.webhooks.webhook_scene import database_time
from tests.rest import events, message, work
from tests.sending import PROCESS

pytestmark = pytest.mark.django_db
KINDS = sorted(SETTINGS)


def report(scene, word, attempt_id=None):
    return fakes.report(scene.kind, scene.url, attempt_id or attempt(), word)


def due():
    """Let the time pass for which calls were put off."""
    Callback.objects.filter(due_at__isnull=False).update(
        due_at=datetime.now(UTC) - timedelta(seconds=1)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_receipt_changes_its_delivery(org, api, kind):
    with Scene(org, kind) as scene:
        message_id = scene.send(api, factories.contact(org))
        assert state() == "SENT"
        assert scene.call(report(scene, "delivered")) == 200
        assert (settle(), state()) == (1, "DELIVERED")
    assert events(message_id) == ["accepted", "sent", "delivered"]
    shown = api.get(message_id)["events"][-1]
    assert (shown["type"], shown["channel"], shown["provider"]) == ("delivered", "SMS", kind)


@pytest.mark.parametrize("words", list(permutations(["sent", "delivered", "failed"])), ids="-".join)
@pytest.mark.parametrize("at_once", [True, False])
def test_the_order_of_receipts_does_not_matter(org, api, scene, words, at_once):
    message_id = scene.send(api, factories.contact(org))
    for word in words * 2:
        scene.call(report(scene, word))
        if not at_once:
            settle()
    settle()
    assert state() == "DELIVERED"
    assert set(events(message_id)) == {"accepted", "sent", "delivered", "failed"}
    assert len(events(message_id)) == 4


@pytest.mark.parametrize(
    "kinds", list(permutations(["bounced", "delivered", "open"])), ids="-".join
)
@pytest.mark.parametrize("channel", ["EMAIL", "SMS"])
def test_a_bounce_outweighs_a_delivery_only_for_email(org, api, kinds, channel):
    api.send(
        message(
            factories.contact(org, email="unknown@simulator.rme.test", mobile="+15005550007"),
            channel=channel,
        )
    )
    work()
    one = Delivery.objects.get().pk
    for kind in kinds:
        receipts.apply([Receipt(one, kind)])
    assert state() == {"EMAIL": "FAILED", "SMS": "DELIVERED"}[channel]


@pytest.mark.django_db(transaction=True)
def test_a_receipt_before_the_outcome_is_retried(org, api, scene):
    person = factories.contact(org)
    message_id = api.send(message(person, channel="SMS")).json()["messageId"]
    claim = claims.claim(org.pk, "SMS", 0)
    made = {}

    class Early(Transport):
        """A transport by which the report comes before the answer."""

        def for_worker(self, number, **_):
            return self

        def perform(self, requests, report_=None):
            made["call"] = scene.call(report(scene, "delivered"))
            made["settled"] = settle()
            made["state"] = state()
            connections.close_all()
            return scene.transport.perform(requests)

    deliver.deliver([claim], Early(), PROCESS, receipts.apply)
    assert made == {"call": 200, "settled": 1, "state": "SENDING"}
    assert (state(), Callback.objects.get().tries) == ("SENT", 1)  # put off for a second
    due()
    assert (settle(), state()) == (1, "DELIVERED")
    assert events(message_id) == ["accepted", "sent", "delivered"]
    assert settle() == 0


def test_receipt_whose_attempt_is_found_later_is_applied(org, api, scene):
    """As after a read that returned too few rows."""
    message_id = scene.send(api, factories.contact(org))
    key, other = attempt(), ids.new_id()
    Attempt.objects.filter(pk=key).update(id=other)
    assert scene.call(report(scene, "dead", key)) == 200
    for tries in range(1, callbacks.UNKNOWN_TRIES + 1):
        assert settle() == 1
        row = Callback.objects.get()
        assert (row.tries, row.due_at is None, state()) == (tries, False, "SENT")
        assert not CallbackLogEntry.objects.exists()
        due()
    Attempt.objects.filter(pk=other).update(id=key)
    assert settle() == 1
    assert (state(), events(message_id)) == ("FAILED", ["accepted", "sent", "bounced"])
    assert Suppression.objects.get().reason == "HARD_BOUNCE"
    assert list(CallbackLogEntry.objects.values_list("verdict", flat=True)) == ["APPLIED"]
    assert (Callback.objects.get().due_at, settle()) == (None, 0)


def test_receipt_whose_attempt_is_never_found_is_unknown_after_some_tries(org, api, scene):
    scene.send(api, factories.contact(org))
    assert scene.call(report(scene, "dead", ids.new_id())) == 200
    for _ in range(callbacks.UNKNOWN_TRIES):
        assert settle() == 1
        assert not CallbackLogEntry.objects.exists()
        due()
    assert settle() == 1
    assert list(CallbackLogEntry.objects.values_list("verdict", flat=True)) == ["UNKNOWN_ID"]
    assert (Callback.objects.get().due_at, state()) == (None, "SENT")


def test_unmatched_receipt_is_retried_for_a_day(org, api, scene):
    message_id = api.send(message(factories.contact(org), channel="SMS")).json()["messageId"]
    claims.claim(org.pk, "SMS", 0)
    row = Delivery.objects.get()
    attempt_id = ids.new_id()
    Attempt.objects.create(
        id=attempt_id,
        organization_id=org.pk,
        message_id=message_id,
        delivery_id=row.pk,
        fence=1,
        channel="SMS",
        provider="twilio",
        account_id=scene.account.pk,
    )
    scene.call(report(scene, "delivered", attempt_id))
    for seconds in (1, 2, 4, 8, 16, 32, 64, 128, 256, 300):
        due()
        before = database_time()
        settle()
        assert before <= Callback.objects.get().due_at - timedelta(seconds=seconds)
        assert Callback.objects.get().due_at - timedelta(seconds=seconds) <= database_time()
    due()
    Callback.objects.update(received_at=datetime.now(UTC) - timedelta(days=2))
    assert (settle(), Callback.objects.get().due_at) == (1, None)


def test_a_late_receipt_ends_an_unknown_outcome(org, api, scene):
    scene.status = 500
    message_id = scene.send(api, factories.contact(org))
    assert state() == "UNKNOWN"
    scene.call(report(scene, "delivered"))
    settle()
    assert (state(), events(message_id)) == ("DELIVERED", ["accepted", "sent", "delivered"])


def test_failure_of_an_earlier_attempt_is_dropped(org, api, scene):
    scene.status = 500
    message_id = scene.send(api, factories.contact(org))
    first = attempt()
    scene.status = 201
    Delivery.objects.update(due_at=datetime.now(UTC) - timedelta(seconds=1))
    sweeper.resolve_unknown()
    work(scene.transport)
    assert (state(), Attempt.objects.count()) == ("SENT", 2)
    for word in ("failed", "dead"):
        scene.call(report(scene, word, first))
    settle()
    assert (state(), Suppression.objects.count()) == ("SENT", 0)
    scene.call(report(scene, "delivered", first))  # that it arrived is true of both
    settle()
    history = ["accepted", "deferred", "sent", "delivered"]
    assert (state(), events(message_id)) == ("DELIVERED", history)


def test_a_dead_number_is_suppressed(org, api, scene):
    person = factories.contact(org)
    message_id = scene.send(api, person)
    scene.call(report(scene, "dead"))
    settle()
    assert (state(), events(message_id)) == ("FAILED", ["accepted", "sent", "bounced"])
    row = Suppression.objects.get()
    assert (row.channel, row.address, row.reason) == ("SMS", person.mobile, "HARD_BOUNCE")


def test_account_cannot_report_on_an_attempt_of_another(org, api, scene):
    scene.send(api, factories.contact(org))
    theirs = attempt()
    with Scene(factories.organization("other"), "twilio") as other:
        assert other.call(report(other, "failed", theirs)) == 200
        assert settle() == 1
    assert state() == "SENT"


def test_a_failure_starts_the_fallback_at_once(org, api, scene):
    person = factories.contact(org)
    factories.contact(org)
    answer = api.send(
        message(
            person,
            channel=None,
            channels=["SMS", "EMAIL"],
            strategy="FIRST_DELIVERED",
            fallbackAfter=3600,
        )
    )
    work(scene.transport)
    sms = attempt()
    scene.call(report(scene, "failed", sms))
    settle()
    assert (state(), sweeper.fall_back()) == ("SENT", 1)
    row = Delivery.objects.get()
    assert (row.status, row.channel) == ("ACCEPTED", "EMAIL")
    for status in (Status.SENDING, Status.SENT):
        apply_transitions([Transition(id=row.pk, status=status, due_at=None)])
    for word in ("failed", "dead", "sent"):  # of the channel that was given up: nothing moves
        scene.call(report(scene, word, sms))
    settle()
    assert (state(), Suppression.objects.count()) == ("SENT", 0)
    scene.call(report(scene, "delivered", sms))
    settle()
    assert state() == "DELIVERED"
    channels = Event.objects.filter(message_id=answer.json()["messageId"], type="delivered")
    assert [event.channel for event in channels] == ["SMS"]


@pytest.mark.parametrize("count", [1, 40])
def test_statements_do_not_grow_with_the_callbacks(org, api, scene, count):
    people = factories.contacts(org, count)
    api.bulk([message(person, channel="SMS") for person in people])
    work(scene.transport)
    for attempt_id in Attempt.objects.values_list("pk", flat=True):
        scene.call(report(scene, "delivered", attempt_id))
    with CaptureQueriesContext(connection) as captured:
        assert settle() == count
    # calls, accounts, by index, whose attempts, by index, locks, by index, attempts, by index,
    # deliveries, by index, statuses, events, done
    own = [q["sql"] for q in captured if "SAVEPOINT" not in q["sql"]]
    assert len(own) == 14
    assert set(Delivery.objects.values_list("status", flat=True)) == {"DELIVERED"}
