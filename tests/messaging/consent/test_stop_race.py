"""STOP by a provider's webhook against a send that is running, three hundred times."""

import threading
import time
from collections import Counter
from datetime import UTC, datetime

import pytest
from django.db import connection, connections, transaction

from messaging.consent import gate_lock
from messaging.delivery import claims, deliver
from messaging.feedback import receipts
from messaging.models import Attempt, Delivery, Suppression
from rme.core import ids
from tests import factories
from tests.fakes import providers as fakes
from tests.messaging.consent.race_scene import AT_ONCE, race
from tests.rest import message
from tests.sending import PROCESS

pytestmark = pytest.mark.django_db(transaction=True)
TIMES = 300


def write_stop(scene, number):
    form = {"From": number, "To": "+12025550100", "Body": "STOP", "MessageSid": ids.new_text_id()}
    assert scene.call(fakes.twilio(scene.url, "", form)) == 200


@pytest.mark.promise("gates-1")
def test_no_attempt_begins_after_a_committed_stop(api, org, scene):
    people = factories.contacts(org, TIMES)
    api.bulk([message(person, channel="SMS") for person in people])
    claimed_at: dict[str, datetime] = {}

    def send() -> None:
        began = datetime.now(UTC)
        claim = claims.claim(org.pk, "SMS", 0, AT_ONCE)
        claimed_at.update({each.contact_id: began for each in claim.deliveries})
        deliver.deliver([claim], scene.transport, PROCESS, receipts.apply)

    stopped_at = race(people, lambda person: write_stop(scene, person.mobile), send)
    send()  # what a round left behind
    gone = sum(seen.body.count(b"Note") for seen in scene.server.seen)
    contacts = dict(Delivery.objects.values_list("id", "contact_id"))
    begun = {contacts[a.delivery_id]: a.started_at for a in Attempt.objects.all()}
    assert gone == len(begun)
    # What was claimed after the STOP has no attempt, and no attempt is younger than the STOP.
    late = {pk for pk, moment in claimed_at.items() if moment > stopped_at[pk]}
    assert late & set(begun) == set()
    assert [pk for pk, moment in begun.items() if moment > stopped_at[pk]] == []
    statuses = Counter(Delivery.objects.values_list("status", "reason"))
    assert statuses == Counter({("SENT", None): gone, ("BLOCKED", "SUPPRESSED"): TIMES - gone})
    assert Suppression.objects.count() == TIMES
    assert late  # and it was tried, both ways
    assert begun


@pytest.mark.promise("gates-1")
def test_attempts_wait_for_an_uncommitted_stop(api, org, scene):
    """The gates are looked at when it is decided, and not before."""
    person = factories.contact(org)
    api.send(message(person, channel="SMS"))
    held, going = threading.Event(), threading.Event()

    def decide() -> None:
        with transaction.atomic():
            gate_lock.take_exclusive([org.pk])
            held.set()
            going.wait(10)
            time.sleep(0.2)
            Suppression.objects.create(
                organization=org, channel="SMS", address=person.mobile, reason="STOP"
            )
        connections.close_all()

    thread = threading.Thread(target=decide)
    thread.start()
    held.wait(10)
    claim = claims.claim(org.pk, "SMS", 0)
    going.set()
    deliver.deliver([claim], scene.transport, PROCESS, receipts.apply)
    thread.join()
    assert scene.server.seen == []
    assert Delivery.objects.get().status == "BLOCKED"


def test_other_organizations_do_not_wait(api, org):
    other = factories.organization("other")
    with transaction.atomic():
        gate_lock.take_exclusive([other.pk])
        done = []

        def send() -> None:
            with transaction.atomic():
                gate_lock.take_shared([org.pk])
                done.append(True)
            connections.close_all()

        thread = threading.Thread(target=send)
        thread.start()
        thread.join(30)
        assert done
        gate_lock.take_shared([other.pk])  # one's own lock is no obstacle
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = "
                       "pg_backend_pid()")  # fmt: skip
        assert cursor.fetchone() == (0,)
