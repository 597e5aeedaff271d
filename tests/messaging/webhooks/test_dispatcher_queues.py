"""Taking queues of notices: leases, what a dead worker leaves, and few statements."""

import threading
from collections import deque
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import WebhookDelivery
from messaging.webhooks import dispatcher, outbox
from rme.core.db import clock, locks
from rme.transport import AddressPolicy, Transport
from tests.messaging.webhooks.dispatcher_scene import note, states
from tests.messaging.webhooks.hooks_scene import endpoint, pass_time, tell

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]
S = WebhookDelivery.Status


def test_a_worker_that_died_is_followed_by_another_with_the_same_ids(org, receiver):
    row = endpoint(org, receiver.url)
    expected = note(row, 3)
    dead = dispatcher.Dispatcher(Transport(AddressPolicy(["127.0.0.1"])))
    dead.begin(outbox.claim(10))
    while len(receiver.seen) < 1:
        dead.flight.step(0.1)  # it was told, and nothing was written down
    dead.flight.close()
    tell()
    assert len(receiver.seen) == 1  # the lease holds
    pass_time(seconds=outbox.LEASE_SECONDS + 1)
    tell()
    ids = [identifier for identifier, _ in receiver.told]
    assert sorted(ids) == sorted([str(expected[0]), *map(str, expected)])
    assert states() == [(S.DELIVERED, 1)] * 3


def test_one_that_comes_back_from_the_dead_frees_nothing(org):
    row = endpoint(org, "https://hooks.example.com/")
    note(row)
    (frozen,) = outbox.claim(10)
    pass_time(seconds=outbox.LEASE_SECONDS + 1)
    (held,) = outbox.claim(10)
    turn = dispatcher.EndpointQueue(frozen, deque(frozen.due))
    (due,) = turn.take()
    turn.hear(due, dispatcher.EndpointResponse(200, "", "", 0.0), 1)
    outbox.record([turn.settled()])
    row.refresh_from_db()
    assert held.fence == frozen.fence + 1 == row.fence
    assert row.free_at > datetime.now(UTC) + timedelta(seconds=50)  # the other holds it still
    assert states() == [(S.DELIVERED, 1)]


def test_one_worker_takes_queues_at_a_time(org, receiver):
    note(endpoint(org, receiver.url))
    taken, go = threading.Event(), threading.Event()

    def hold():
        with locks.alone("messaging.webhooks.dispatcher") as alone:
            assert alone
            taken.set()
            go.wait(5)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait(5)
    dispatcher.dispatch()
    assert receiver.seen == []
    go.set()
    holder.join()
    dispatcher.dispatch()
    assert len(receiver.seen) == 1


def test_statements_do_not_grow_with_notices(org):
    row = endpoint(org, "https://hooks.example.com/")
    counts = []
    clock.now()  # asked every ten seconds
    for count in (1, 100):
        note(row, count)
        with CaptureQueriesContext(connection) as took:
            (claim,) = outbox.claim(10)
            turn = dispatcher.EndpointQueue(claim, deque(claim.due))
            turn.succeeded = True
            for due in list(turn.line):
                turn.under_way += 1
                turn.hear(due, dispatcher.EndpointResponse(200, "", "", 0.0), 1)
            turn.line.clear()
            outbox.record([turn.settled()])
        counts.append((len(turn.told), len(took)))
    assert counts == [(1, 3), (100, 3)]


def test_statements_do_not_grow_with_endpoints(org, receiver):
    counts = []
    for count in (1, 20):
        for n in range(count):
            note(endpoint(org, f"{receiver.url}{count}-{n}"), 25)
        with CaptureQueriesContext(connection) as took:
            claims = outbox.claim(100)
        counts.append((sum(len(claim.due) for claim in claims), len(took)))
        pass_time(seconds=100)
        WebhookDelivery.objects.update(due_at=None, status=S.DELIVERED)
    assert counts == [(25, 2), (500, 2)]


def test_nothing_to_do_is_one_statement(org):
    endpoint(org, "https://hooks.example.com/")
    with CaptureQueriesContext(connection) as took:
        assert outbox.claim(10) == []
    assert len(took) == 1
