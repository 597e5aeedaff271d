"""`Prefer: wait`: the answer comes when the message was sent or failed, or the time is over."""

import threading
import time

import pytest
from django.db import connection

from messaging.accept import waiting
from messaging.models import Delivery, IdempotencyKey
from tests import factories
from tests.rest import error, message, work
from tests.service import wait_for


@pytest.mark.promise("answer-8", "answer-9")
@pytest.mark.parametrize(
    ("prefer", "seconds"),
    [
        (None, 0),
        ("respond-async", 0),
        ("wait=5", 5),
        ("Wait = 7", 7),
        ('wait="3"', 3),
        ("respond-async, wait=10", 10),
        ("wait=10; x=y", 10),
        ("wait=99", 30),
        ("wait=0", 0),
        ("wait=-1", 0),
        ("wait=1.5", 0),
        ("wait=soon", 0),
        ("await=5", 0),
        ("wait=" + "9" * 40, 0),
    ],
)
def test_the_seconds_of_a_prefer_header(prefer, seconds):
    assert waiting.seconds(prefer) == seconds


@pytest.fixture
def worker(transactional_db):
    """Send what is ready, in another thread, from the moment that something is."""
    stop = threading.Event()

    def run():
        while not stop.is_set():
            work()
            time.sleep(0.01)
        connection.close()

    thread = threading.Thread(target=run)
    yield thread.start
    stop.set()
    if thread.ident:
        thread.join()


@pytest.mark.django_db(transaction=True)
class TestWaiting:
    @pytest.mark.promise("answer-6")
    def test_answer_comes_once_the_message_is_sent(self, api, org, worker):
        worker()
        answer = api.send(message(factories.contact(org)), Prefer="wait=20")
        body = answer.json()
        message_id = body.pop("messageId")
        assert (answer.status_code, answer["Preference-Applied"]) == (200, "wait=20")
        assert body.pop("status") in ("SENT", "DELIVERED")
        assert body == {
            "resolvedChannel": "EMAIL",
            "provider": "simulator",
            "scheduledFor": None,
        }
        assert str(Delivery.objects.get().message_id) == message_id

    @pytest.mark.promise("errors-24", "key-14", "answer-7")
    def test_a_failure_is_a_provider_error(self, api, org, worker):
        worker()
        person = factories.contact(org, email="reject@simulator.rme.test")
        headers = {"Prefer": "wait=20", "Idempotency-Key": "k"}
        answer = api.send(message(person), **headers)
        row = Delivery.objects.get()
        assert (answer.status_code, answer.json()) == (
            502,
            error("PROVIDER_ERROR", row.detail, message_id=str(row.message_id)),
        )
        assert not IdempotencyKey.objects.exists()  # what ends in 5xx does not use its key up

    def test_the_key_stores_the_final_answer(self, api, org, worker):
        worker()
        headers = {"Prefer": "wait=20", "Idempotency-Key": "k"}
        body = message(factories.contact(org))
        first = api.send(body, **headers)
        again = api.send(body, **headers)
        assert (again.status_code, again.content) == (200, first.content)
        assert (again["Idempotent-Replayed"], "Preference-Applied" in again) == ("true", False)
        assert Delivery.objects.count() == 1

    @pytest.mark.promise("answer-8")
    def test_a_message_still_under_way_is_answered_202(self, api, org):
        started = time.monotonic()
        answer = api.send(message(factories.contact(org)), Prefer="wait=1")
        assert (answer.status_code, answer.json()["status"]) == (202, "ACCEPTED")
        assert time.monotonic() - started >= 1

    def test_a_scheduled_message_does_not_wait(self, api, org):
        started = time.monotonic()
        schedule = {"mode": "LOCAL", "time": "09:00"}
        answer = api.send(message(factories.contact(org), schedule=schedule), Prefer="wait=20")
        assert (answer.status_code, answer.json()["status"]) == (202, "SCHEDULED")
        assert time.monotonic() - started < 10

    def test_a_refusal_is_answered_at_once(self, api, org):
        person = factories.contact(org, email="")
        answer = api.send(message(person), Prefer="wait=20")
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "UNREACHABLE")

    def test_gate_closed_during_the_wait_answers_with_its_error(self, api, org, worker):
        person = factories.contact(org)

        def close():
            wait_for(Delivery.objects.exists)
            from messaging.models import Suppression

            Suppression.objects.create(
                organization=org, channel="EMAIL", address=person.email, reason="STOP"
            )
            connection.close()
            worker()

        thread = threading.Thread(target=close)
        thread.start()
        answer = api.send(message(person), Prefer="wait=20")
        thread.join()
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "SUPPRESSED")

    @pytest.mark.promise("answer-6")
    def test_answer_waits_for_the_last_of_several_recipients(self, api, org, worker):
        worker()
        good, bad = factories.contacts(org, 2)
        type(bad).objects.filter(pk=bad.pk).update(email="reject@simulator.rme.test")
        answer = api.send(message(good, bad), Prefer="wait=20")
        statuses = [one["status"] for one in answer.json()["recipients"]]
        assert answer.status_code == 200
        assert statuses[0] in ("SENT", "DELIVERED")
        assert statuses[1] == "FAILED"

    def test_answer_comes_at_once_with_too_many_waiting_requests(self, api, org, settings):
        taken = [
            waiting._waiting_requests.acquire(blocking=False)
            for _ in range(settings.WAITING_REQUESTS)
        ]
        try:
            started = time.monotonic()
            answer = api.send(message(factories.contact(org)), Prefer="wait=20")
            assert (answer.status_code, time.monotonic() - started < 10) == (202, True)
        finally:
            for _ in taken:
                waiting._waiting_requests.release()
