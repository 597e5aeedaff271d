"""Windows that leave behind what is slow: what is in flight, what is in doubt, and what goes on."""

from functools import partial

import pytest
from django.db import OperationalError
from structlog.testing import capture_logs

from messaging.delivery import accounts, claims, deliver, tasks
from messaging.delivery.accounts import concurrency
from messaging.domain.accounts.admission import WINDOW
from messaging.feedback import receipts
from messaging.models import Attempt, Delivery
from messaging.policy import organization_policy
from rme.core import cache
from rme.core.db import clock
from rme.core.outbound import outbound_transport
from rme.transport import AddressPolicy, Transport
from tests import factories
from tests.clocks import StandingClock
from tests.fakes.slow_smtp import SlowSmtp
from tests.messaging.delivery.slow_scene import (
    database_away,
    full_disk,
    impatient,
    limit,
    mail_by,
    process,
    statuses,
    wait_for,
)
from tests.rest import Api, events, message
from tests.threads import at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("impatient")]
__all__ = ["impatient", "process"]
SLOW = "person3@simulator.rme.test"


@pytest.fixture
def send(transport, process):
    """Return a function that sends a claim and returns how many deliveries had their turn."""

    def send_claim(org, limit=WINDOW):
        claim = claims.claim(org.pk, "EMAIL", 0, limit)
        return deliver.deliver([claim], transport, process, receipts.apply)[org.pk]

    return send_claim


def room(org, process):
    """Return how many of a window's sends the organization's accounts may take now."""
    return accounts.process_rooms({org.pk: 50}, "EMAIL", process.load)[org.pk]


@pytest.fixture
def transport(process):
    made = Transport(AddressPolicy(["127.0.0.1"]))
    yield made
    assert process.late_outcomes.finish(30)
    made.close()


def send_ready(process):
    """Run the worker's task, in a thread whose transport may call this machine."""
    at_once(lambda: tasks.send("EMAIL", outbound_transport(), process), 1)


def in_doubt_now():
    """Count the attempts that nobody knows the outcome of."""
    return Attempt.objects.filter(outcome=None).count()


def test_hanging_recipient_delays_no_other_of_its_window(api, org, process, send, settings):
    settings.PATIENCE_SECONDS = 3.0  # in which the others are answered, though the machine pauses
    with SlowSmtp(lambda recipient: recipient == SLOW) as server:
        account_id = mail_by(server, org)
        api.bulk([message(person) for person in factories.contacts(org, 50)])
        assert send(org) == 50
        assert statuses() == {"SENT": 49, "SENDING": 1}
        assert (in_doubt_now(), process.load.in_doubt, process.load.window()) == (1, 1, 49)
        assert limit(process, account_id) == 25
        server.go.set()
        assert process.late_outcomes.finish(10)
    assert statuses() == {"SENT": 50}
    assert (in_doubt_now(), len(server.taken), process.load.window()) == (0, 50, 50)
    late = Delivery.objects.get(address=SLOW)
    assert events(late.message_id) == ["accepted", "sent"]
    assert Attempt.objects.get(delivery_id=late.pk).latency_ms > 250


def test_messages_not_begun_wait_as_if_never_claimed(api, org, process, send):
    with SlowSmtp(lambda recipient: True) as server:
        account_id = mail_by(server, org)
        api.bulk([message(person) for person in factories.contacts(org, 50)])
        send(org)
        # As many as there are connections to a host are under way; of the others is no trace.
        assert statuses() == {"SENDING": 10, "ACCEPTED": 40}
        waiting = Delivery.objects.filter(status="ACCEPTED")
        assert set(waiting.values_list("waiting", "tries", "provider")) == {("PROVIDER", 0, "mail")}
        assert (Attempt.objects.count(), in_doubt_now(), process.load.window()) == (10, 10, 40)
        assert limit(process, account_id) == 1
        assert room(org, process) == 0
        server.go.set()


def test_recovered_account_regains_its_limit(api, org, process, send, settings):
    hangs = True
    with SlowSmtp(lambda recipient: hangs) as server:
        account_id = mail_by(server, org)
        api.bulk([message(person) for person in factories.contacts(org, 400)])
        send(org)
        assert limit(process, account_id) == 1
        server.go.set()
        assert process.late_outcomes.finish(10)
        assert limit(process, account_id) == 11  # each late, good answer adds one
        hangs = False
        settings.PATIENCE_SECONDS = 60.0  # no answer is late, though the machine pauses
        found = []
        while (free := room(org, process)) < 50:
            found.append(free)
            send(org, free)
        assert found == [min(each, 40) for each in range(11, 50, 5)]  # some room is for others
        assert limit(process, account_id) == 50


def test_account_judged_slow_too_early_regains_its_limit_at_once(
    api, org, process, send, settings, monkeypatch
):
    settings.PATIENCE_SECONDS = 60.0
    monkeypatch.setattr(concurrency, "LEAST_WAIT", 1 / 60)
    monkeypatch.setattr(concurrency, "USUAL_WAIT", 1 / 60)
    with SlowSmtp(lambda recipient: True) as server, capture_logs() as logs:
        account_id = mail_by(server, org)
        api.bulk([message(person) for person in factories.contacts(org, 8)])
        send(org)
        assert (statuses(), limit(process, account_id)) == ({"SENDING": 8}, 1)
        assert room(org, process) == 0  # and not yet known to be slow
        wait_for(lambda: len(server.taken) == 8)
        server.go.set()
        assert process.late_outcomes.finish(10)
        assert statuses() == {"SENT": 8}
        assert (limit(process, account_id), room(org, process)) == (50, 50)
        usual = process.load.accounts[account_id].usual
    assert 0 < usual < 60
    (account,) = organization_policy.of(org.pk).accounts
    assert process.load.answer_seconds(account) == max(1.0, 4 * usual)
    assert not [each for each in logs if each["event"].startswith("account.")]


def test_slow_account_and_its_recovery_are_logged_once(api, org, process, send):
    process.load.clock = lambda: 0.0
    with SlowSmtp(lambda recipient: True) as server, capture_logs() as logs:
        account_id = mail_by(server, org)
        api.bulk([message(person) for person in factories.contacts(org, 8)])
        send(org)
        for seconds in (0.5, 1.5, 2.5):
            process.load.clock = partial(float, seconds)
            room(org, process)
        server.go.set()
        assert process.late_outcomes.finish(10)
        (account,) = organization_policy.of(org.pk).accounts
        while limit(process, account_id) < 50:
            process.load.answered_in_time(account, 50, 0.01)
    found = [each for each in logs if each["event"].startswith("account.")]
    assert found == [
        {"event": "account.slow", "log_level": "warning", "account_id": account_id, "limit": 1,
         "in_flight": 8},
        {"event": "account.recovered", "log_level": "info", "account_id": account_id},
    ]  # fmt: skip


def test_another_organization_continues_with_at_most_one_window_in_doubt(api, org, process):
    other = factories.organization("other")
    factories.welcome(other)
    with SlowSmtp(lambda recipient: True) as server, SlowSmtp(lambda recipient: False) as well:
        for number in range(6):
            mail_by(server, org, f"mail-{number}", priority=number)
        mail_by(well, other)
        api.bulk([message(person) for person in factories.contacts(org, 400)])
        people = factories.contacts(other, 60)
        Api(other).bulk([message(person) for person in people])

        most = 0

        def work():
            nonlocal most
            for number in range(20):  # on a busy machine a healthy server seems slow at first
                tasks.send("EMAIL", outbound_transport(), process)
                assert in_doubt_now() <= WINDOW
                hanging = Attempt.objects.filter(organization_id=org.pk, outcome=None).count()
                most = max(most, hanging)
                if number > 1 and statuses(organization_id="other") == {"SENT": 60}:
                    return
                Delivery.objects.filter(status="ACCEPTED").update(due_at=clock.now())

        at_once(work, 1)
        assert statuses(organization_id="other") == {"SENT": 60}
        assert len(well.taken) == 60
        # To one host no more is under way than twice the connections of a thread.
        # Of those that hang, some may have ended since: an account waits for 20 s at most.
        assert most >= 10
        assert in_doubt_now() <= 20
        server.go.set()


def test_a_late_failure_goes_to_the_next_account_by_the_next_claim(api, org, process, send):
    with SlowSmtp(lambda recipient: True) as slow, SlowSmtp(lambda recipient: False) as well:
        mail_by(slow, org, "slow", priority=1)
        mail_by(well, org, "well", priority=2)
        slow.answer = b"451 4.3.0 later\r\n"
        message_id = api.send(message(factories.contact(org))).json()["messageId"]
        send(org)
        assert statuses() == {"SENDING": 1}
        slow.go.set()
        assert process.late_outcomes.finish(10)
        assert statuses() == {"ACCEPTED": 1}
        send(org)
    assert events(message_id) == ["accepted", "failover", "sent"]
    assert Delivery.objects.get().provider == "well"
    assert (len(slow.taken), len(well.taken)) == (1, 1)


def test_outcome_after_a_takeover_leaves_the_delivery_unchanged(api, org, process, send):
    with SlowSmtp(lambda recipient: True) as server:
        mail_by(server, org)
        api.send(message(factories.contact(org)))
        send(org)
        Delivery.objects.update(fence=7)
        server.go.set()
        assert process.late_outcomes.finish(10)
    assert statuses() == {"SENDING": 1}
    assert Attempt.objects.get().outcome == "Accepted"  # of that attempt it is true


def test_account_failing_at_once_is_sent_probes_only(api, org, process, send, settings):
    settings.PATIENCE_SECONDS = 60.0  # no answer is late, though the machine pauses
    process.load.clock = lambda: 0.0
    with SlowSmtp(lambda recipient: True) as server:
        server.answer = b"451 4.3.0 later\r\n"
        server.go.set()
        account_id = mail_by(server, org)
        people = factories.contacts(org, 300)
        api.bulk([message(person) for person in people])
        send(org, 20)  # which opens its circuit
        assert room(org, process) == 5
        send(org, 5)
        assert room(org, process) == 0  # for a second
        assert statuses() == {"ACCEPTED": 300}
        assert Delivery.objects.filter(tries=0).count() == 275
        assert (len(server.taken), limit(process, account_id)) == (25, 50)
        process.load.clock = lambda: concurrency.PROBE_SECONDS
        assert room(org, process) == 5


def test_full_disk_stops_sending_after_one_window_stored_later(api, org, process):
    with SlowSmtp(lambda recipient: False) as server:
        mail_by(server, org)
        api.bulk([message(person) for person in factories.contacts(org, 300)])
        with full_disk(Attempt._meta.db_table):
            with pytest.raises(OperationalError):
                send_ready(process)
            for _ in range(5):
                send_ready(process)  # nothing may leave, so it does nothing
            assert (len(server.taken), in_doubt_now(), process.load.window()) == (50, 50, 0)
        assert process.late_outcomes.finish(20)
        assert statuses()["SENT"] == 50
        send_ready(process)
        assert (len(server.taken), len(set(server.taken))) == (300, 300)
    assert statuses() == {"SENT": 300}


def test_outcome_during_a_database_outage_is_stored_later(api, org, process, send, monkeypatch):
    standing = StandingClock(monkeypatch, cache)
    with SlowSmtp(lambda recipient: True) as server:
        mail_by(server, org)
        api.send(message(factories.contact(org)))
        send(org)
        with database_away(), capture_logs() as logs:
            standing.advance(15)  # the database's clock is to be read again
            server.go.set()
            wait_for(lambda: logs)
            assert {each["event"] for each in logs} == {"deliver.not_stored"}
            assert process.load.in_doubt == 1
        assert process.late_outcomes.finish(20)
    assert (statuses(), in_doubt_now(), len(server.taken)) == ({"SENT": 1}, 0, 1)
