"""A decision between accepting and sending counts, and so does one during a send."""

import random
import threading
import time
from collections import Counter

import pytest
from django.db import connections, transaction

from messaging.consent import ledger
from messaging.consent.ledger import ConsentDecision
from messaging.delivery import claims, deliver
from messaging.feedback import receipts
from messaging.models import Attempt, Delivery, Suppression
from rme.core.db import clock
from rme.core.outbound import outbound_transport
from tests import factories
from tests.rest import all_events, message, work
from tests.sending import PROCESS


@pytest.mark.promise("gates-2")
@pytest.mark.django_db
def test_thousand_contacts_opting_out_after_accept_are_sent_nothing(api, org):
    people = factories.contacts(org, 1000)
    for half in (people[:500], people[500:]):
        assert api.bulk([message(person) for person in half]).json()["accepted"] == 500
    ledger.record(
        org.pk,
        [
            ConsentDecision(
                str(person.pk), "EMAIL", "TRANSACTIONAL", "OPTED_OUT", "API", clock.now()
            )
            for person in people[:500]
        ],
    )
    Suppression.objects.bulk_create(
        Suppression(
            organization=org,
            channel="EMAIL",
            address=person.email if i % 2 else "",
            contact_id="" if i % 2 else str(person.pk),
            reason="MANUAL",
        )
        for i, person in enumerate(people[500:])
    )
    work()
    assert Counter(Delivery.objects.values_list("status", "reason")) == {
        ("BLOCKED", "NO_CONSENT"): 500,
        ("BLOCKED", "SUPPRESSED"): 500,
    }
    assert Attempt.objects.count() == 0
    assert Counter(event.type for event in all_events()) == {
        "accepted": 1000,
        "blocked": 1000,
    }


@pytest.mark.promise("gates-2")
@pytest.mark.django_db(transaction=True)
def test_messages_claimed_after_a_committed_suppression_are_not_sent(api, org):
    """Two hundred times beside a running send. What was claimed before may be on its way."""
    people = factories.contacts(org, 200)
    api.bulk([message(person) for person in people])
    start = threading.Barrier(2)
    suppressed_at: dict[str, float] = {}
    claimed_at: dict[str, float] = {}
    took = 0.004  # a suppression, at the speed of this machine

    def send() -> None:
        for _ in people:
            start.wait(20)
            time.sleep(random.random() * 2 * took)
            began = time.perf_counter()
            claim = claims.claim(org.pk, "EMAIL", 0, 1)
            claimed_at.update({each.contact_id: began for each in claim.deliveries})
            deliver.deliver([claim], outbound_transport(), PROCESS, receipts.apply)
        connections.close_all()

    thread = threading.Thread(target=send)
    thread.start()
    for person in people:  # the oldest first, as they are claimed
        start.wait(20)
        time.sleep(random.random() * took)
        started = time.perf_counter()
        Suppression.objects.create(
            organization=org, channel="EMAIL", address=person.email, reason="MANUAL"
        )
        suppressed_at[str(person.pk)] = time.perf_counter()
        took = 0.8 * took + 0.2 * (suppressed_at[str(person.pk)] - started)
    thread.join()

    attempted = {
        contact_id
        for contact_id, key in Delivery.objects.values_list("contact_id", "id")
        if Attempt.objects.filter(delivery_id=key).exists()
    }
    early = {key for key in suppressed_at if suppressed_at[key] < claimed_at[key]}
    assert attempted & early == set()
    assert early  # and it was tried
    assert attempted
    blocked = Delivery.objects.filter(status="BLOCKED", reason="SUPPRESSED")
    assert set(blocked.values_list("contact_id", flat=True)) == set(suppressed_at) - attempted


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("reason", ["COMPLAINT", "HARD_BOUNCE"])
def test_uncommitted_suppression_does_not_delay_sends(api, org, reason):
    """The gate neither sees it nor waits for it."""
    person = factories.contact(org)
    api.send(message(person))
    open_, done = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Suppression.objects.create(
                organization=org, channel="EMAIL", address=person.email, reason=reason
            )
            open_.set()
            done.wait(20)
        connections.close_all()

    thread = threading.Thread(target=hold)
    thread.start()
    open_.wait(20)
    try:
        assert work() == 1
        assert Delivery.objects.get().status == "DELIVERED"
    finally:
        done.set()
        thread.join()
