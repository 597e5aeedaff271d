"""Claiming queues: leases, dead workers, and statement counts."""

import math
from collections import Counter, deque
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import WebhookDelivery
from messaging.webhooks import dispatcher, outbox
from messaging.webhooks.endpoint_queue import ENDPOINT_LIMIT, EndpointQueue, EndpointResponse
from rme.core.db import clock
from rme.transport import AddressPolicy, Transport
from tests.messaging.webhooks.dispatcher_scene import queue, states
from tests.messaging.webhooks.webhook_scene import dispatch_all, endpoint, pass_time

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]
S = WebhookDelivery.Status


def test_after_a_worker_died_another_sends_the_same_ids(org, receiver):
    row = endpoint(org, receiver.url)
    expected = queue(row, 3)
    dead = dispatcher.Dispatcher(Transport(AddressPolicy(["127.0.0.1"])))
    dead.start(outbox.claim(10))
    while len(receiver.seen) < 1:
        dead.requests.step(0.1)  # it was sent, and no result was recorded
    dead.close()
    dispatch_all()
    assert len(receiver.seen) == 1  # the lease holds
    pass_time(seconds=outbox.LEASE_SECONDS + 1)
    dispatch_all()
    ids = [identifier for identifier, _ in receiver.received]
    assert sorted(ids) == sorted([str(expected[0]), *map(str, expected)])
    assert states() == [(S.DELIVERED, 1)] * 3


def ended(claim):
    """Return a claim whose lease has ended."""
    return replace(claim, until=-math.inf)


@pytest.mark.parametrize("sent", [0, 1])
def test_worker_sends_nothing_after_its_lease(org, receiver, sent):
    queue(endpoint(org, receiver.url), 3)
    late = dispatcher.Dispatcher(Transport(AddressPolicy(["127.0.0.1"])))
    claims = outbox.claim(10)
    if sent:
        late.start(claims)
        for each in late.queues:  # it was stopped so long
            each.claim = ended(each.claim)
    else:
        late.start([*map(ended, claims)])
    late.finish()
    late.close()
    assert (len(receiver.seen), late.queues) == (sent, set())
    pass_time(seconds=outbox.LEASE_SECONDS + 1)
    dispatch_all()
    assert len(receiver.seen) == 3
    assert states() == [(S.DELIVERED, 1)] * 3


def test_nothing_is_sent_if_the_lease_ends_while_reading_the_clock(org, receiver):
    queue(endpoint(org, receiver.url), 3)
    late = dispatcher.Dispatcher(Transport(AddressPolicy(["127.0.0.1"])))
    claims = outbox.claim(10)
    asked = []

    def slowly(execute, sql, *arguments):
        if sql == "SELECT clock_timestamp()":
            asked.append(sql)
            for each in late.queues:
                each.claim = ended(each.claim)
        return execute(sql, *arguments)

    clock._readings.forget("now")
    with connection.execute_wrapper(slowly):
        late.start(claims)
        late.finish()
    late.close()
    assert (len(asked), receiver.seen, late.queues) == (1, [], set())


def test_a_late_worker_does_not_release_the_endpoint(org):
    row = endpoint(org, "https://hooks.example.com/")
    queue(row)
    (frozen,) = outbox.claim(10)
    pass_time(seconds=outbox.LEASE_SECONDS + 1)
    (held,) = outbox.claim(10)
    turn = EndpointQueue(frozen, deque(frozen.due))
    (due,) = turn.take()
    turn.add_response(due, EndpointResponse(200, "", "", 0.0), 1)
    outbox.record(turn.take_results(), [turn.result()])
    row.refresh_from_db()
    assert held.fence == frozen.fence + 1 == row.fence
    assert row.free_at > datetime.now(UTC) + timedelta(seconds=50)  # the other still has the lease
    assert states() == [(S.DELIVERED, 1)]


def test_unrecorded_deliveries_of_an_endpoint_stay_within_its_limit(org):
    queue(endpoint(org, "https://hooks.example.com/"), 30)
    (claim,) = outbox.claim(1)
    turn = EndpointQueue(claim, deque(claim.due))
    (first,) = turn.take()
    turn.add_response(first, EndpointResponse(200, "", "", 0.0), 1)
    sent = list(turn.take())
    assert len(sent) == ENDPOINT_LIMIT - 1
    turn.add_response(sent[0], EndpointResponse(200, "", "", 0.0), 1)
    assert list(turn.take()) == []  # a result that is not recorded counts, too
    outbox.record(turn.take_results())
    assert len(list(turn.take())) == 2
    assert Counter(states()) == {(S.DELIVERED, 1): 2, (S.PENDING, 0): 28}


def test_more_endpoints_than_a_worker_claims_are_left_to_another(org, receiver):
    rows = [endpoint(org, f"{receiver.url}{n}") for n in range(dispatcher.SHARE + 1)]
    for row in rows:
        queue(row)
    woken = []

    def wake():
        woken.append(len(outbox.claim(100)))

    dispatcher.dispatch(wake)
    assert woken[0] == 1
    assert len(receiver.seen) == dispatcher.SHARE


def test_busy_worker_holds_only_its_share(org):
    worker = dispatcher.Dispatcher(Transport(AddressPolicy(["127.0.0.1"])))
    for _ in range(dispatcher.SHARE):
        queue(endpoint(org, "https://hooks.example.com/"))
    claims = outbox.claim(dispatcher.SHARE)
    worker.queues.update(EndpointQueue(claim, deque(claim.due)) for claim in claims)
    worker.waited = 0.1
    assert (worker.room(1.0), worker.room(0.1)) == (0, dispatcher.SHARE)
    worker.queues.pop()
    assert worker.room(1.0) == dispatcher.SHARE
    worker.close()


def test_statements_do_not_grow_with_deliveries(org):
    row = endpoint(org, "https://hooks.example.com/")
    counts = []
    clock.now()  # reads the database clock every ten seconds
    for count in (1, 100):
        queue(row, count)
        with CaptureQueriesContext(connection) as took:
            (claim,) = outbox.claim(10)
            turn = EndpointQueue(claim, deque(claim.due))
            turn.succeeded = True
            for due in list(turn.due):
                turn.in_flight += 1
                turn.add_response(due, EndpointResponse(200, "", "", 0.0), 1)
            turn.due.clear()
            results = turn.take_results()
            outbox.record(results, [turn.result()])
        counts.append((len(results), len(took)))
    assert counts == [(1, 4), (100, 4)]


def test_statements_do_not_grow_with_endpoints(org, receiver):
    counts = []
    for count in (1, 20):
        for n in range(count):
            queue(endpoint(org, f"{receiver.url}{count}-{n}"), 25)
        with CaptureQueriesContext(connection) as took:
            claims = outbox.claim(100)
        counts.append((sum(len(claim.due) for claim in claims), len(took)))
        pass_time(seconds=100)
        WebhookDelivery.objects.update(due_at=None, status=S.DELIVERED)
    assert counts == [(25, 3), (500, 3)]


def test_claim_without_due_deliveries_is_one_statement(org):
    endpoint(org, "https://hooks.example.com/")
    with CaptureQueriesContext(connection) as took:
        assert outbox.claim(10) == []
    assert len(took) == 1
