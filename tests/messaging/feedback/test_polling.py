"""Polling a provider that cannot call us for receipts."""

import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from messaging.domain.timing import LAST_AFTER
from messaging.feedback import polling, tasks
from messaging.models import Attempt, Delivery, ProviderReference, Suppression
from messaging.store.feedback import references
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.db import clock
from tests import factories
from tests.fakes.providers import SETTINGS
from tests.messaging.feedback.polling_scene import Twilio, due, stop_clock, waits
from tests.messaging.feedback.sms_scene import state
from tests.rest import events

pytestmark = pytest.mark.django_db


@pytest.mark.promise("webhooks-16")
def test_a_delivery_is_found_by_polling(org, api, twilio, monkeypatch):
    stop_clock(monkeypatch)
    (sent, *_) = [twilio.send(api, factories.contact(org))]
    assert (state(), waits()) == ("SENT", [15])
    assert twilio.poll() == 0
    due()
    assert twilio.poll() == 1
    assert (events(sent), state()) == (["accepted", "sent", "delivered"], "DELIVERED")
    assert waits() == [None]
    due()
    assert twilio.poll() == 0


def test_a_polled_account_gets_no_callback_url(org, api, twilio, settings):
    settings.BASE_URL = "https://rme.example"
    TtlCache.clear_all()
    twilio.send(api, factories.contact(org))
    due()
    twilio.poll()
    send, ask = twilio.server.seen
    sid = SETTINGS["twilio"]["account_sid"]
    assert (ask.method, ask.path) == ("GET", f"/2010-04-01/Accounts/{sid}/Messages/SM1.json")
    assert ask.header("authorization") == send.header("authorization")
    assert b"StatusCallback" not in send.body


def test_an_account_with_callbacks_is_not_polled(org, api, settings):
    settings.BASE_URL = "https://rme.example"
    with Twilio(org, settings={"status_by": "CALLBACK"}) as scene:
        scene.send(api, factories.contact(org))
        assert ProviderReference.objects.count() == 0
        assert b"StatusCallback=https" in scene.server.seen[0].body


def test_a_dead_number_is_suppressed(org, api, twilio):
    person = factories.contact(org)
    sent = twilio.send(api, person)
    twilio.told = {"status": "undelivered", "error_code": 30005}
    due()
    twilio.poll()
    assert (events(sent), state()) == (["accepted", "sent", "bounced"], "FAILED")
    assert Suppression.objects.get().address == person.mobile
    assert waits() == [None]


@pytest.mark.promise("webhooks-16")
def test_an_open_message_is_polled_again_when_three_times_as_old(org, api, twilio, monkeypatch):
    twilio.send(api, factories.contact(org))
    stop_clock(monkeypatch)
    twilio.told = {"status": "sent"}
    attempt_id = Attempt.objects.get().pk
    found, age = [], timedelta(seconds=15)
    while age:
        older = ids.at_least(clock.now() - age)
        Attempt.objects.update(id=older)
        ProviderReference.objects.update(id=older)
        due()
        assert twilio.poll() == 1
        (wait,) = waits()
        found.append(wait)
        age = wait and age + timedelta(seconds=wait)
    assert found == [30, 90, 270, 810, 2430, 7290, 21870, 53595, None]
    assert sum(wait or 0 for wait in found) + 15 == LAST_AFTER.total_seconds()
    assert (state(), ids.moment(attempt_id) < datetime.now(UTC)) == ("SENT", True)


def test_a_final_delivery_is_not_polled(org, api, twilio):
    twilio.send(api, factories.contact(org))
    Delivery.objects.update(status="DELIVERED")
    due()
    assert (twilio.poll(), twilio.asked, waits()) == (1, Counter(), [None])


def test_a_delivery_in_progress_is_polled_later(org, api, twilio, monkeypatch):
    stop_clock(monkeypatch)
    twilio.send(api, factories.contact(org))
    Delivery.objects.update(status="SENDING")
    due()
    assert (twilio.poll(), waits()) == (1, [30])
    Delivery.objects.update(status="SENT")
    due()
    twilio.poll()
    assert (state(), waits()) == ("DELIVERED", [None])


def test_statements_do_not_grow_with_the_messages(org, api, twilio):
    def statements(many):
        people = factories.contacts(org, many)
        twilio.send_all(api, people)
        twilio.by_number = {
            person.mobile: {"status": "failed", "error_code": 30006} for person in people[::2]
        }
        due()
        with CaptureQueriesContext(connection) as seen:
            assert twilio.poll() == many
        Suppression.objects.all().delete()  # the people of the next round have the same numbers
        return len([query for query in seen if "SAVEPOINT" not in query["sql"]])

    # five of them for attempts and deliveries to be read, locked and set, by index
    assert [statements(2), statements(20)] == [17, 17]


def test_the_task_polls_until_nothing_is_due(org, api, twilio, settings):
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]
    twilio.send(api, factories.contact(org))
    due()
    polling.poll(twilio.transport, time.monotonic() + 5)
    assert state() == "DELIVERED"
    tasks.poll()
    assert sum(twilio.asked.values()) == 1


def test_old_polls_are_deleted_with_their_ids(org, api, twilio):
    twilio.send(api, factories.contact(org))
    ProviderReference.objects.update(
        id=ids.at_least(clock.now() - references.STORED * 2), ask_at=F("ask_at")
    )
    references.purge()
    assert ProviderReference.objects.count() == 0
