"""What arrives over SMPP sessions: from another's SMSC into events, consent and suppressions."""

import threading

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from messaging.feedback import callbacks, inbound_sms, listeners
from messaging.models import (
    Attempt,
    Callback,
    ConsentEntry,
    Delivery,
    ProviderAccount,
    ProviderReference,
    Suppression,
)
from messaging.store.feedback import references
from rme.core import ids
from rme.core.db import clock
from rme.transport import AddressPolicy, Transport
from tests import factories
from tests.fakes.smsc import wait_for
from tests.messaging.feedback.listener_scene import account
from tests.rest import events, message, work

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def transport():
    made = Transport(AddressPolicy(["127.0.0.1"]))
    yield made
    made.close()


@pytest.fixture
def rung():
    return []


@pytest.fixture
def listened(org, smsc, rung):
    """Return an account whose provider keeps a connection."""
    made = account(org, smsc)
    listeners.open_sessions(lambda: rung.append(1))
    smsc.esme()
    return made


def send(api, transport, *people):
    """Send to people; gives the messages' ids, in their order."""
    answer = api.bulk([message(person, channel="SMS") for person in people])
    assert answer.json()["accepted"] == len(people)
    work(transport)
    return [each["messageId"] for each in answer.json()["results"]]


def states():
    return sorted(Delivery.objects.values_list("status", flat=True))


@pytest.mark.promise("webhooks-17")
def test_receipt_becomes_an_event(org, api, smsc, transport, listened, rung):
    (sent,) = send(api, transport, factories.contact(org))
    assert (states(), smsc.binds) == (["SENT"], 1)
    assert smsc.receipt("m1") == 0
    assert rung == [1]
    assert callbacks.apply_due() == (1, [])
    assert (events(sent), states()) == (["accepted", "sent", "delivered"], ["DELIVERED"])


def test_receipt_for_a_dead_number_suppresses_it(org, api, smsc, transport, rung):
    account(org, smsc, dead_errors=["001"])
    listeners.open_sessions(lambda: rung.append(1))
    person = factories.contact(org)
    (sent,) = send(api, transport, person)
    assert smsc.receipt("m1", "UNDELIV", err="001") == 0
    callbacks.apply_due()
    assert (events(sent), states()) == (["accepted", "sent", "bounced"], ["FAILED"])
    assert Suppression.objects.get().address == person.mobile


def test_receipt_before_the_outcome_is_recorded_is_retried(org, api, smsc, transport, listened):
    """The SMSC is faster than the worker's commit."""
    reported = []

    def report_at_once(event):
        threading.Timer(0, lambda: reported.append(smsc.receipt("m1"))).start()
        return 0

    smsc.decide = report_at_once
    (sent,) = send(api, transport, factories.contact(org))
    wait_for(lambda: reported == [0])
    reference = ProviderReference.objects.get()
    ProviderReference.objects.all().delete()
    assert callbacks.apply_due() == (1, [])
    assert (events(sent), Callback.objects.get().due_at is not None) == (["accepted", "sent"], True)
    reference.save(force_insert=True)
    Callback.objects.update(due_at=clock.now())
    assert callbacks.apply_due() == (1, [])
    assert (events(sent), Callback.objects.get().due_at) == (
        ["accepted", "sent", "delivered"],
        None,
    )


def test_receipt_of_an_unknown_message_is_dropped_after_some_tries(org, smsc, listened):
    assert smsc.receipt("strange") == 0
    tries = 0
    while Callback.objects.filter(due_at__isnull=False).exists():
        Callback.objects.update(due_at=clock.now())
        callbacks.apply_due()
        tries += 1
    assert tries == callbacks.UNKNOWN_TRIES + 1


def test_another_accounts_id_is_another_message(org, api, smsc, transport, listened):
    (sent,) = send(api, transport, factories.contact(org))
    ProviderReference.objects.update(account_id=listened.pk + 1)
    assert smsc.receipt("m1") == 0
    callbacks.apply_due()
    assert events(sent) == ["accepted", "sent"]


@pytest.mark.parametrize("reported", ["123456", "0000123456", "00000000123456"])
def test_a_receipt_with_leading_zeros_finds_its_message(
    org, api, smsc, transport, listened, reported
):
    (sent,) = send(api, transport, factories.contact(org))
    ProviderReference.objects.update(reference="123456")
    assert smsc.receipt(reported) == 0
    callbacks.apply_due()
    assert (events(sent), states()) == (["accepted", "sent", "delivered"], ["DELIVERED"])


def test_receipt_matches_an_id_stored_by_the_former_release(org, api, smsc, transport, listened):
    (sent,) = send(api, transport, factories.contact(org))
    ProviderReference.objects.update(reference="0000123456")
    assert smsc.receipt("0000123456") == 0
    callbacks.apply_due()
    assert (events(sent), states()) == (["accepted", "sent", "delivered"], ["DELIVERED"])


def test_reused_id_matches_the_newest_message(org, listened):
    old, new = ids.new_id(), ids.new_id()
    for attempt_id in (new, old):
        ProviderReference.objects.create(id=attempt_id, account_id=1, reference="7")
    assert references.find({(1, "7"), (1, "8")}) == {(1, "7"): new}


def test_statements_do_not_grow_with_the_receipts(org, api, smsc, transport, listened):
    def statements(count):
        sent = send(api, transport, *factories.contacts(org, count))
        for attempt in Attempt.objects.filter(delivery_id__in=sent):
            assert smsc.receipt(attempt.provider_id) == 0
        with CaptureQueriesContext(connection) as seen:
            assert callbacks.apply_due() == (count, [])
        assert set(states()) == {"DELIVERED"}
        return len(seen)

    assert statements(2) == statements(20)


def test_sending_stores_the_ids_by_one_statement(org, api, smsc, transport, listened):
    sent = send(api, transport, *factories.contacts(org, 30))
    rows = Attempt.objects.filter(delivery_id__in=sent).values_list(
        "account_id", "provider_id", "id"
    )
    found = ProviderReference.objects.values_list("account_id", "reference", "id")
    assert sorted(found) == sorted(rows)
    assert len(found) == 30


def test_old_ids_are_deleted(org):
    old, new = ids.at_least(clock.now() - references.STORED * 2), ids.new_id()
    for attempt_id in (old, new):
        ProviderReference.objects.create(id=attempt_id, account_id=1, reference="7")
    references.purge()
    assert ProviderReference.objects.get().pk == new


def test_stop_is_applied_each_time_and_answered(org, api, smsc, transport, listened):
    person = factories.contact(org)
    for text in (b"STOP", b"START", b"STOP"):
        assert smsc.deliver(text, source_addr=person.mobile[1:]).is_success
        inbound_sms.send_replies(callbacks.apply_due()[1], transport)
    statuses = ConsentEntry.objects.order_by("id").values_list("status", flat=True)
    assert list(statuses) == ["OPTED_OUT", "OPTED_IN", "OPTED_OUT"]
    assert Suppression.objects.get().reason == "STOP"
    assert [event.destination_addr for event in smsc.taken] == [person.mobile[1:]] * 3
    assert [event.source_addr for event in smsc.taken] == ["12025550100"] * 3
    assert smsc.binds == 1
    answer = api.send(message(person, channel="SMS"))
    assert answer.json()["error"]["code"] == "SUPPRESSED"


def test_message_that_cannot_be_stored_is_not_confirmed(org, smsc, listened):
    whose = callbacks.find_account(listened.public_id)
    assert whose is not None

    def away(execute, sql, params, many, context):
        raise OperationalError

    with connection.execute_wrapper(away):
        assert listeners.store_received(whose, lambda: None, [b"said"]) is False
    assert not Callback.objects.exists()
    assert listeners.store_received(whose, lambda: None, [b"said", b"said"]) is True
    assert Callback.objects.count() == 2


def test_an_unreadable_body_is_stored_and_changes_nothing(org, listened):
    whose = callbacks.find_account(listened.public_id)
    assert whose is not None
    assert listeners.store_received(whose, lambda: None, [b"\xff", b""])
    assert callbacks.apply_due() == (2, [])


def test_paused_account_is_listened_to(org, smsc):
    account(org, smsc)
    ProviderAccount.objects.update(state="PAUSED")
    listeners.open_sessions(lambda: None)
    assert smsc.receipt("m1") == 0


def test_callbacks_of_a_deleted_account_are_dropped(org, smsc, listened):
    assert smsc.receipt("m1") == 0
    listened.delete()
    assert callbacks.apply_due() == (1, [])
    assert not Callback.objects.filter(due_at__isnull=False).exists()


def test_account_with_invalid_settings_delays_no_other(org, smsc):
    account(org, smsc, name="broken", port="none")
    account(org, smsc)
    listeners.open_sessions(lambda: None)
    assert smsc.receipt("m1") == 0


def test_listeners_start_and_stop_with_the_process(org, smsc, rung):
    account(org, smsc)
    listeners.start(lambda: rung.append(1))
    assert smsc.receipt("m1") == 0
    wait_for(lambda: rung == [1])
    listeners.stop()
    wait_for(lambda: not smsc.sessions)


def test_no_connection_opens_after_stop(org, smsc):
    """The look goes on that began before, and reads the next account only then."""
    for name in ("first", "second"):
        account(org, smsc, name=name, system_id=name)
    asked = []

    def over():
        asked.append(1)
        return len(asked) > 1

    listeners.open_sessions(lambda: None, over)
    wait_for(lambda: smsc.binds == 1)
    assert len(asked) == 2
    listeners.stop()
    wait_for(lambda: not smsc.sessions)
    assert smsc.binds == 1
