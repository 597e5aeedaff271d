"""Every way onto the suppression list waits for sends that have looked at it, and is then seen."""

import io
import threading

import pytest
from django.db import connections, transaction

from messaging.consent import erasure, gate_lock, suppression_import
from messaging.delivery import claims, deliver
from messaging.domain.progress.receipts import Receipt
from messaging.feedback import callbacks, receipts
from messaging.models import Attempt, Delivery, ProviderAccount, Suppression
from rme.core.cache import TtlCache
from rme.crm.models import Contact
from tests import factories
from tests.fakes import providers as fakes
from tests.messaging.consent.race_scene import AT_ONCE, race
from tests.messaging.consent.test_soft_bounces import earlier
from tests.messaging.console.conftest import url
from tests.rest import message
from tests.sending import PROCESS
from tests.service import wait_for
from tests.tenants.admin.scene import person
from tests.threads import waiting

pytestmark = pytest.mark.django_db(transaction=True)
TIMES = 300
ENTRY = {"channel": "SMS", "address": "+12125550199", "reason": "MANUAL"}


def report(scene, word, code, attempt_id):
    assert scene.call(fakes.report("twilio", scene.url, attempt_id, word, code)) == 200


def by_api(api, org, scene):
    return lambda: api.call("POST", "/suppressions", ENTRY)


def by_form(api, org, scene):
    root = person("root", is_superuser=True)
    return lambda: root.post(url("suppression_new"), ENTRY)


def by_import(api, org, scene):
    file = io.BytesIO(b"channel,address\nSMS,+12125550199\n")
    suppression_import.start(org.pk, "list.csv", file, "grace")
    return suppression_import.work


def by_hard_bounce(api, org, scene):
    scene.send(api, factories.contact(org))
    report(scene, "dead", "", Attempt.objects.get().pk)
    return callbacks.apply_due


def by_soft_bounce(api, org, scene):
    someone = factories.contact(org)
    for days in (8, 6, 4, 2):
        earlier(org, someone, days)
    scene.send(api, someone)
    report(scene, "failed", "30003", Attempt.objects.get().pk)
    return callbacks.apply_due


def by_simulator(api, org, scene):
    """Complain at once, as the simulator does: in the process that sent it."""
    ProviderAccount.objects.create(
        organization=org, name="simulator", kind="simulator", channel="EMAIL", credentials="{}"
    )
    TtlCache.clear_all()
    api.send(message(factories.contact(org, email="complaint@simulator.rme.test")))
    claim = claims.claim(org.pk, "EMAIL", 0)
    found: list[Receipt] = []
    deliver.deliver([claim], scene.transport, PROCESS, found.extend)
    return lambda: receipts.apply(found)


@pytest.mark.promise("gates-1")
@pytest.mark.parametrize(
    "way", [by_api, by_form, by_import, by_hard_bounce, by_soft_bounce, by_simulator]
)
def test_suppressing_waits_for_sends_that_checked_the_gates(api, org, scene, way):
    suppress = way(api, org, scene)

    def do() -> None:
        suppress()
        connections.close_all()

    thread = threading.Thread(target=do)
    with transaction.atomic():
        gate_lock.take_shared([org.pk])
        thread.start()
        wait_for(lambda: waiting() == 1)
        assert not Suppression.objects.exists()
        # Who has looked writes to deliveries next: nobody who waits for it may have them.
        list(Delivery.objects.select_for_update(nowait=True))
    thread.join(20)
    assert Suppression.objects.count() == 1


def test_erasure_waiting_for_the_gate_lock_holds_no_row_locks(api, org):
    """Who holds the lock writes to suppressions next: the two would wait for each other."""
    someone = factories.contact(org)
    api.send(message(someone))
    entry = Suppression.objects.create(
        organization=org, channel="SMS", contact_id=str(someone.pk), reason="MANUAL"
    )

    def do() -> None:
        erasure.erase(org.pk, str(someone.pk))
        connections.close_all()

    thread = threading.Thread(target=do)
    with transaction.atomic():
        gate_lock.take_exclusive([org.pk])
        thread.start()
        wait_for(lambda: waiting() == 1)
        assert list(Suppression.objects.select_for_update(nowait=True)) == [entry]
        assert list(Contact.objects.select_for_update(nowait=True)) == [someone]
        list(Delivery.objects.select_for_update(nowait=True))
    thread.join(20)
    assert not Suppression.objects.exists()


def test_other_receipts_do_not_wait_for_the_gate_lock(api, org, scene):
    scene.send(api, factories.contact(org))
    report(scene, "failed", "30008", Attempt.objects.get().pk)
    thread = threading.Thread(target=lambda: [callbacks.apply_due(), connections.close_all()])
    with transaction.atomic():
        gate_lock.take_shared([org.pk])
        thread.start()
        thread.join(20)
        assert not thread.is_alive()
    assert Delivery.objects.get().status == "FAILED"


@pytest.mark.promise("gates-1")
def test_no_attempt_begins_after_a_committed_hard_bounce(api, org, scene):
    """Of a message before, by a report, against the next message's send."""
    people = factories.contacts(org, TIMES)
    api.bulk([message(each, channel="SMS") for each in people])
    while (claim := claims.claim(org.pk, "SMS", 0, 50)).deliveries:
        deliver.deliver([claim], scene.transport, PROCESS, receipts.apply)
    api.bulk([message(each, channel="SMS") for each in people])
    first = {d.contact_id: d for d in Delivery.objects.filter(status="SENT")}
    attempts = dict(Attempt.objects.values_list("delivery_id", "id"))
    before = set(attempts.values())

    def bounce(person) -> None:
        report(scene, "dead", "", attempts[first[str(person.pk)].pk])

    def send() -> None:
        claim = claims.claim(org.pk, "SMS", 0, AT_ONCE)
        deliver.deliver([claim], scene.transport, PROCESS, receipts.apply)

    bounced_at = race(people, bounce, send)

    contacts = dict(Delivery.objects.values_list("id", "contact_id"))
    begun = {
        contacts[each.delivery_id]: each.started_at
        for each in Attempt.objects.exclude(pk__in=before)
    }
    assert [pk for pk, moment in begun.items() if moment > bounced_at[pk]] == []
    blocked = Delivery.objects.filter(status="BLOCKED", reason="SUPPRESSED").count()
    assert (blocked, Suppression.objects.count()) == (TIMES - len(begun), TIMES)
    assert begun  # and it was tried, both ways
    assert blocked
