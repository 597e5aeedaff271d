"""Endpoints that fail or hang: they are disabled, and none delays another."""

import threading
import time

import pytest
import structlog

from messaging.models import WebhookDelivery
from messaging.webhooks import dispatcher, endpoint_queue, endpoints
from rme.transport import AddressPolicy, Transport
from tests import factories
from tests.fakes.http1 import Http1Server, respond
from tests.messaging.webhooks.dispatcher_scene import queue, states
from tests.messaging.webhooks.webhook_scene import (
    DueTime,
    database_time,
    dispatch_all,
    endpoint,
    pass_time,
)
from tests.rest import message

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]
S = WebhookDelivery.Status


@pytest.mark.promise("webhooks-8")
def test_410_disables_the_endpoint_at_once(org, api, receiver):
    receiver.statuses = [410]
    row = endpoint(org, receiver.url)
    queue(row, 3)
    with structlog.testing.capture_logs() as logs:
        dispatch_all()
    row.refresh_from_db()
    assert (row.enabled, row.disabled_reason) == (False, "It answered 410: gone.")
    assert len(receiver.seen) == 1
    entry = {"event": "endpoint.disabled", "log_level": "warning"}
    assert logs == [{**entry, "endpoint_id": row.pk, "organization_id": "acme"}]
    pass_time(hours=1)
    api.send(message(factories.contact(org)))
    dispatch_all()
    assert (len(receiver.seen), WebhookDelivery.objects.count()) == (1, 3)
    endpoints.enable(row)
    dispatch_all()
    assert {status for status, _ in states()} == {S.DELIVERED}


def test_a_dead_endpoint_costs_one_request_a_run(org, receiver):
    receiver.statuses = [500] * 99
    row = endpoint(org, receiver.url)
    queue(row, 50)
    for turn in range(1, 14):
        before = database_time()
        dispatch_all()
        after = database_time()
        assert len(receiver.seen) == turn
        row.refresh_from_db()
        free = DueTime(
            (row.free_at - after).total_seconds(), (row.free_at - before).total_seconds()
        )
        usual = min(2.0 ** (turn - 1), 1800)
        assert free.is_between(0.9 * usual, 1.1 * usual)
        pass_time(seconds=free.from_start)
    receiver.statuses = []
    pass_time(hours=12)
    dispatch_all()
    row.refresh_from_db()
    assert (row.failures, row.failing_since) == (0, None)
    assert {status for status, _ in states()} == {S.DELIVERED}


@pytest.mark.promise("webhooks-8")
def test_five_days_without_a_success_disable_an_endpoint(org, receiver):
    receiver.statuses = [500, 500, 200, 500, 500, 500]
    row = endpoint(org, receiver.url)
    enabled = []
    for days in (0, 3, 3, 3, 3, 3):
        pass_time(days=days)
        queue(row)
        WebhookDelivery.objects.exclude(pk=WebhookDelivery.objects.latest("id").pk).update(
            due_at=None
        )
        dispatch_all()
        row.refresh_from_db()
        enabled.append(row.enabled)
    assert enabled == [True, True, True, True, True, False]
    assert row.disabled_reason == "It failed for 5 days."


def test_failure_among_successes_is_deferred_alone(org, receiver):
    receiver.statuses = [200, 200, 500]
    row = endpoint(org, receiver.url)
    queue(row, 20)
    dispatch_all()
    pass_time(seconds=2)
    dispatch_all()
    counts = [status for status, _ in states()]
    assert (counts.count(S.DELIVERED), counts.count(S.PENDING)) == (19, 1)
    row.refresh_from_db()
    assert (row.failures, row.failing_since, row.enabled) == (0, None, True)


@pytest.mark.promise("webhooks-9")
def test_quick_endpoints_do_not_wait_for_hanging_ones(org, receiver, monkeypatch):
    monkeypatch.setattr(dispatcher, "TIMEOUT", 90.0)  # as long as it may take on a busy machine
    other = factories.organization("other")
    go, probes_before = threading.Event(), []

    def answer(sock, seen):
        go.wait(90)
        respond(sock, 500)

    with Http1Server(answer) as hanging:
        slow = [endpoint(org, f"{hanging.url}{n}") for n in range(3)]
        quick = [endpoint(other, f"{receiver.url}{n}") for n in range(100)]
        for row in slow:
            queue(row, 5)
        for row in quick:
            queue(row, 2)
        until = time.monotonic() + 80

        def arrived():
            return len(receiver.seen), len(hanging.seen)

        def watch():
            while arrived() != (200, 3) and time.monotonic() < until:
                time.sleep(0.01)
            probes_before.append(arrived())
            go.set()

        watching = threading.Thread(target=watch)
        watching.start()
        dispatch_all(80.0)
        watching.join()
    assert probes_before == [(200, 3)]  # all arrived while the others hung
    assert len(hanging.seen) == 3  # one probe each
    assert WebhookDelivery.objects.filter(status=S.DELIVERED).count() == 200


def test_a_delivery_queued_while_an_endpoint_hangs_is_dispatched(org, receiver):
    go = threading.Event()

    def answer(sock, seen):
        go.wait(20)
        respond(sock, 500)

    with Http1Server(answer) as hanging:
        queue(endpoint(org, hanging.url))
        late = endpoint(org, receiver.url)
        worker = dispatcher.Dispatcher(Transport(AddressPolicy(["127.0.0.1"])))
        assert worker.run(time.monotonic() + 0.3) is False
        queue(late)
        until = time.monotonic() + 30
        while not receiver.seen and time.monotonic() < until:
            assert worker.run(time.monotonic() + 0.3) is False
        assert len(receiver.seen) == 1
        go.set()  # the late one came while the other hung
        worker.finish()
        worker.close()
    assert states() == [(S.PENDING, 1), (S.DELIVERED, 1)]


def test_requests_in_flight_to_one_endpoint_are_limited(org):
    present, most, guard, reached = [0], [0], threading.Lock(), threading.Event()

    def answer(sock, seen):
        with guard:
            present[0] += 1
            most[0] = max(most[0], present[0])
            if present[0] == endpoint_queue.ENDPOINT_LIMIT:
                reached.set()
        if len(receiver.seen) > 1:  # the first is a probe, alone
            reached.wait(20)
        time.sleep(0.02)  # one more would come now
        with guard:
            present[0] -= 1
        respond(sock, 200)

    with Http1Server(answer) as receiver:
        queue(endpoint(org, receiver.url), 60)
        dispatch_all()
    assert most[0] == endpoint_queue.ENDPOINT_LIMIT
    assert states() == [(S.DELIVERED, 1)] * 60
