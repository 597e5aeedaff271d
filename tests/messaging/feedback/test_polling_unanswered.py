"""Polling a provider that does not answer, or answers wrongly."""

import time
from collections import Counter
from datetime import timedelta

import orjson
import pytest

from messaging.delivery.accounts import CircuitState, circuits
from messaging.feedback import polling
from messaging.models import Delivery, ProviderAccount, ProviderReference
from messaging.store.feedback import references
from rme.core.cache import TtlCache
from tests import factories
from tests.fakes import http1, tcp
from tests.fakes.providers import SETTINGS
from tests.fakes.tcp import free_port
from tests.messaging.feedback.polling_scene import Twilio, due, stop_clock, waits
from tests.messaging.feedback.sms_scene import state
from tests.messaging.webhooks.webhook_scene import database_time

pytestmark = pytest.mark.django_db


@pytest.mark.promise("webhooks-16")
def test_an_unanswered_poll_is_repeated_later_and_the_account_skipped(
    org, api, twilio, monkeypatch
):
    stop_clock(monkeypatch)
    twilio.send_all(api, factories.contacts(org, 60))
    twilio.refuses = 429
    due()
    asked, silent = polling.poll_batch(twilio.transport)
    assert (asked, silent) == (references.PER_ACCOUNT, {twilio.account.pk})
    assert polling.poll_batch(twilio.transport, silent) == (0, set())
    assert Counter(waits()) == {0: 10, 30: 50}
    twilio.refuses = 0
    due()
    polling.poll(twilio.transport, time.monotonic() + 20)
    assert set(Delivery.objects.values_list("status", flat=True)) == {"DELIVERED"}


@pytest.mark.promise("webhooks-16")
def test_an_unanswered_poll_opens_no_circuit(org, api, twilio):
    twilio.send_all(api, factories.contacts(org, 50))
    twilio.refuses = 503
    due()
    twilio.poll()
    assert circuits.read([twilio.account.pk])[twilio.account.pk].state is CircuitState.CLOSED


def test_a_silent_account_delays_no_other(org, api, twilio):
    twilio.send(api, factories.contact(org))
    ProviderAccount.objects.update(state="PAUSED", name="first")
    TtlCache.clear_all()
    with Twilio(org, name="second") as other:
        other.send(api, factories.contact(org))
        twilio.refuses = 500
        due()
        assert polling.poll_batch(other.transport) == (2, {twilio.account.pk})
    assert sorted(Delivery.objects.values_list("status", flat=True)) == ["DELIVERED", "SENT"]


def test_deleted_accounts_are_not_polled_and_broken_ones_later(org, api, twilio, monkeypatch):
    stop_clock(monkeypatch)
    twilio.send(api, factories.contact(org))
    ProviderAccount.objects.update(credentials="{}")
    due()
    assert (twilio.poll(), waits()) == (1, [30])
    ProviderAccount.objects.all().delete()
    due()
    assert (twilio.poll(), waits()) == (1, [None])


def test_reference_taken_by_a_dead_worker_is_polled_after_its_lease(org, api, twilio):
    twilio.send(api, factories.contact(org))
    due()
    before = database_time()
    (taken,) = references.take_due(())
    after = database_time()
    (ask_at,) = ProviderReference.objects.values_list("ask_at", flat=True)
    assert taken.reference == "SM1"
    assert before <= ask_at - timedelta(seconds=60) <= after
    assert twilio.poll() == 0


def silent(connection, seen):
    """Take a question, and say nothing in time."""
    tcp.stall(connection)


def half(connection, seen):
    connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"status": "deliv')
    return False


def elsewhere(connection, seen):
    http1.respond(connection, 302, b"", {"Location": f"http://127.0.0.1:{free_port()}/"})


@pytest.mark.parametrize("fault", [silent, half, elsewhere, lambda connection, seen: False])
def test_a_broken_answer_changes_nothing(org, api, fault, monkeypatch):
    stop_clock(monkeypatch)
    with Twilio(org) as scene:
        scene.send(api, factories.contact(org))
        credentials = orjson.loads(ProviderAccount.objects.get().credentials) | {"timeout": 1}
        ProviderAccount.objects.update(credentials=orjson.dumps(credentials).decode())
        scene.server.answer = fault
        due()
        assert polling.poll_batch(scene.transport) == (1, {scene.account.pk})
    assert (state(), waits()) == ("SENT", [30])


def test_a_refused_connection_changes_nothing(org, api, twilio, monkeypatch):
    stop_clock(monkeypatch)
    twilio.send(api, factories.contact(org))
    settings = {**SETTINGS["twilio"], "status_by": "POLL"}
    settings["base_url"] = f"http://127.0.0.1:{free_port()}"
    ProviderAccount.objects.update(credentials=orjson.dumps(settings).decode())
    due()
    assert polling.poll_batch(twilio.transport) == (1, {twilio.account.pk})
    assert (state(), waits()) == ("SENT", [30])
