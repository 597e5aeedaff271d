"""Workers that are killed while dispatching, and requests that outlast a run."""

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from django.conf import settings as deployment
from django.db import connection

from messaging.housekeeping.tasks import housekeeping
from messaging.models import WebhookDelivery
from messaging.webhooks import delivery_log, dispatcher, outbox, replays
from messaging.webhooks.endpoint_queue import ENDPOINT_LIMIT
from messaging.webhooks.tasks import QUEUE, dispatch_due_webhooks, dispatch_webhooks
from rme.celery import app
from rme.core.redis.connection import redis_client
from tests import factories
from tests.fakes.http1 import Http1Server, respond
from tests.messaging.webhooks.webhook_scene import Receiver, dispatch_all, endpoint, pass_time
from tests.service import ROOT

pytestmark = pytest.mark.django_db(transaction=True)

ENDPOINTS, EACH = 5, 40
WORKER = """
import django; django.setup()
from messaging.webhooks import dispatcher
dispatcher.dispatch()
"""


def worker():
    """Start a process that dispatches, in the tests' own database."""
    at = connection.settings_dict
    host, port = quote(at["HOST"] or "", safe=""), at["PORT"] or ""
    address = f"postgres://{at['USER']}:{quote(at['PASSWORD'] or '')}@{host}:{port}/{at['NAME']}"
    env = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "rme.settings",
        "DATABASE_URL": address,
        "OUTBOUND_OPEN_HOSTS": "127.0.0.1",
        "FIELD_KEYS": ",".join(deployment.FIELD_KEYS),
    }
    return subprocess.Popen([sys.executable, "-c", WORKER], cwd=ROOT, env=env)


@pytest.mark.promise("webhooks-13")
def test_killed_worker_loses_nothing_and_repeats_have_the_same_id(settings):
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]
    org = factories.organization()

    go, enough = threading.Event(), 60

    def answer(sock, seen):
        if len(receiver.seen) >= enough:  # what comes now is under way when the worker is killed
            go.wait(120)
        respond(sock, 204)

    with Http1Server(answer) as receiver:
        rows = [endpoint(org, f"{receiver.url}{n}") for n in range(ENDPOINTS)]
        expected = {str(replays.queue_test(row)): row.pk for row in rows for _ in range(EACH)}
        killed = worker()
        until = time.monotonic() + 60
        while len(receiver.seen) < enough and time.monotonic() < until:
            time.sleep(0.005)
        killed.kill()
        killed.wait()
        assert enough <= len(receiver.seen) < ENDPOINTS * EACH
        go.set()
        assert WebhookDelivery.objects.filter(status="PENDING").exists()
        pass_time(seconds=outbox.LEASE_SECONDS + 1)
        until = time.monotonic() + 60
        while (
            WebhookDelivery.objects.filter(status="PENDING").exists() and time.monotonic() < until
        ):
            dispatch_all(5.0)
        times = Counter(seen.header("webhook-id") for seen in receiver.seen)
    assert set(times) == set(expected)
    assert set(WebhookDelivery.objects.values_list("status", flat=True)) == {"DELIVERED"}
    assert 0 < sum(times.values()) - len(times) <= ENDPOINTS * ENDPOINT_LIMIT
    assert max(times.values()) == 2


def test_concurrent_workers_share_endpoints_and_send_nothing_twice(settings):
    """Dead endpoints and one that hangs keep none of the others waiting."""
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]
    org, go, at_once = factories.organization(), threading.Event(), Counter()
    most, lock = Counter(), threading.Lock()

    def answer(sock, seen):
        with lock:
            at_once[seen.path] += 1
            most[seen.path] = max(most[seen.path], at_once[seen.path])
        if seen.path == "/hangs":
            go.wait(30)
        with lock:
            at_once[seen.path] -= 1
        respond(sock, 500 if seen.path.startswith("/dead") else 204)

    def work():
        try:
            while due.exclude(endpoint_id__in=[row.pk for row in bad]).exists():
                dispatcher.dispatch(seconds=0.3)
        finally:
            connection.close()

    due = WebhookDelivery.objects.filter(status="PENDING")
    with Http1Server(answer) as receiver:
        bad = [endpoint(org, f"{receiver.url}{name}") for name in ("hangs", "dead-1", "dead-2")]
        good = [endpoint(org, f"{receiver.url}{n}") for n in range(20)]
        expected = {str(replays.queue_test(row)) for row in good for _ in range(20)}
        for row in bad:
            replays.queue_test(row)
        workers = [threading.Thread(target=work) for _ in range(4)]
        for each in workers:
            each.start()
        for each in workers:
            each.join(60)
        times = Counter(s.header("webhook-id") for s in receiver.seen if s.path[1:].isdecimal())
        go.set()
        join_finishing()
    assert times == dict.fromkeys(expected, 1)
    assert max(most.values()) <= ENDPOINT_LIMIT
    assert set(due.values_list("endpoint_id", flat=True)) == {row.pk for row in bad[1:]}


def join_finishing():
    """Wait for the threads that finish requests after a run: they give their connections back."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and thread.name == "webhooks":
            thread.join(30)


def test_a_slow_endpoint_keeps_no_worker(settings):
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]
    org = factories.organization()

    go = threading.Event()

    def answer(sock, seen):
        go.wait(20)
        respond(sock, 204)

    with Http1Server(answer) as slow:
        replays.queue_test(endpoint(org, slow.url))
        dispatcher.dispatch(seconds=0.3)
        assert WebhookDelivery.objects.get().attempts is None
        go.set()  # the worker was free before
        until = time.monotonic() + 10
        while WebhookDelivery.objects.get().due_at and time.monotonic() < until:
            time.sleep(0.05)
    assert (WebhookDelivery.objects.get().status, len(slow.seen)) == ("DELIVERED", 1)
    join_finishing()


def test_beat_requests_the_task_every_second(settings):
    entry = app.conf.beat_schedule["webhooks"]
    options = {"queue": QUEUE}
    assert entry == {"task": dispatch_due_webhooks.name, "schedule": 1.0, "options": options}
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]
    with Receiver() as receiver:
        replays.queue_test(endpoint(factories.organization(), receiver.url))
        dispatch_due_webhooks.apply()
        assert [kind for _, kind in receiver.received] == ["webhook.test"]
    WebhookDelivery.objects.update(queued_at=datetime.now(UTC) - delivery_log.DELIVERED_STORED * 2)
    housekeeping.apply()
    assert not WebhookDelivery.objects.exists()


def test_a_worker_with_more_than_its_share_requests_another(settings):
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]
    org, wakeup, redis = factories.organization(), f"rme:wakeup:{QUEUE}", redis_client()
    with Receiver() as receiver:
        for number in range(dispatcher.SHARE):
            replays.queue_test(endpoint(org, f"{receiver.url}{number}"))
        dispatch_due_webhooks.run()
        assert redis.exists(wakeup)
        dispatch_webhooks.run()  # which finds nothing more to do
        assert not redis.exists(wakeup)
    assert len(receiver.received) == dispatcher.SHARE
