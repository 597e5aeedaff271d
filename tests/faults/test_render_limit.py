"""A delivery that hangs a real worker while it is rendered: it fails, and nothing else does."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote
from uuid import uuid4

import psutil
import pytest
from django.conf import settings as deployment
from django.db import connection

from messaging.delivery import claims, sweeper
from messaging.models import Delivery
from rme.core.process.time_budget import StepTimers, TimedStep
from rme.core.redis.connection import redis_client
from tests import factories
from tests.faults import hanging
from tests.messaging.delivery.deliver_scene import due_now
from tests.rest import Api, events, message, work
from tests.service import ROOT

pytestmark = pytest.mark.django_db(transaction=True)

QUEUE = f"tests-{uuid4().hex}"


@pytest.fixture
def org():
    row = factories.organization()
    factories.welcome(row)
    return row


@pytest.fixture
def claim(org):
    """Return a claim of two deliveries."""
    Api(org).bulk([message(person) for person in factories.contacts(org, 2)])
    return claims.claim(org.pk, "EMAIL", 0)


@pytest.fixture(scope="module")
def process(django_db_setup):
    """Run a worker of one process on a queue of its own, in the tests' database and Redis."""
    at = connection.settings_dict
    host, port = quote(at["HOST"] or "", safe=""), at["PORT"] or ""
    env = {
        **os.environ,
        "DATABASE_URL": f"postgres://{at['USER']}@{host}:{port}/{at['NAME']}",
        "REDIS_URL": deployment.REDIS_URL,
        "FIELD_KEYS": ",".join(deployment.FIELD_KEYS),
        "RENDER_SECONDS": "2",  # the process has other threads, whose time counts too
    }
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "rme.celery", "worker"]
    command += ["--include", "tests.faults.hanging", "--queues", QUEUE, "--concurrency", "1"]
    command += ["--loglevel", "WARNING"]
    command += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    process = subprocess.Popen(command, cwd=ROOT, env=env)
    yield process
    process.terminate()
    process.wait(30)


@pytest.fixture
def worker(process):
    """Return how to have the worker render a delivery of a claim; it returns the worker."""
    with hanging.app.connection_for_write(deployment.CELERY_BROKER_URL) as broker:

        def render(claim, which, how, **options):
            given = list(claim.deliveries[which]._replace(expires_at=0))
            arguments = (claim.organization_id, given, how)
            hanging.render.apply_async(arguments, queue=QUEUE, connection=broker, **options)
            return process

        yield render


def entries(name, count):
    """Return what the worker left in a list, once it is so much."""
    until = time.monotonic() + 90
    while redis_client().llen(name) < count and time.monotonic() < until:
        time.sleep(0.1)
    return [found.decode() for found in redis_client().lrange(name, 0, -1)]


def test_delivery_hanging_in_native_code_fails_alone(worker, claim):
    first, second = claim.deliveries
    worker(claim, 0, "native")
    worker(claim, 1, "nothing")
    # by the process that took the place of the first
    assert entries("tests:outcomes", 1) == [f"{second.id} rendered"]
    until = time.monotonic() + 60
    while Delivery.objects.filter(pk=first.id, status="SENDING") and time.monotonic() < until:
        time.sleep(0.1)
    found = Delivery.objects.values_list("status", "reason", "detail").get(pk=first.id)
    assert found == ("FAILED", "TEMPLATE_ERROR", "rendering takes too long")
    assert events(first.message_id) == ["accepted", "failed"]
    due_now()  # the lease has ended
    assert sweeper.reclaim() == 1
    work()
    statuses = dict(Delivery.objects.values_list("message_id", "status"))
    assert {str(each): status for each, status in statuses.items()} == {
        first.message_id: "FAILED",
        second.message_id: "DELIVERED",
    }


@pytest.mark.parametrize(
    ("how", "options"),
    [("python", {}), ("sleep", {"soft_time_limit": 1, "time_limit": 60})],
)
def test_delivery_hanging_where_signals_arrive_is_given_up(worker, claim, how, options):
    first, second = claim.deliveries
    worker(claim, 0, how, **options)
    worker(claim, 1, "nothing")
    assert entries("tests:outcomes", 2) == [
        f"{first.id} rendering takes too long",
        f"{second.id} rendered",
    ]


def test_delivery_of_a_killed_worker_does_not_fail(worker, claim):
    first, second = claim.deliveries
    process = worker(claim, 0, "sleep")
    assert entries("tests:begun", 1) == [first.id]
    (child,) = psutil.Process(process.pid).children()
    child.kill()
    worker(claim, 1, "nothing")
    assert entries("tests:outcomes", 1) == [f"{second.id} rendered"]
    assert set(Delivery.objects.values_list("status", flat=True)) == {"SENDING"}


def test_step_outside_of_the_main_thread_has_no_limit():
    def step():
        with TimedStep(StepTimers(), 0.01, b"x"):
            return sum(range(10**6))

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(step).result() == 499999500000


def test_every_task_has_a_soft_and_a_hard_limit():
    app = hanging.app
    app.loader.import_default_modules()
    usual = (180.0, 210.0)
    limits = {
        name: (
            task.soft_time_limit or app.conf.task_soft_time_limit,
            task.time_limit or app.conf.task_time_limit,
        )
        for name, task in app.tasks.items()
        if name.startswith(("messaging.", "push.", "crm."))
    }
    assert limits == dict.fromkeys(limits, usual) | {
        "messaging.housekeeping": (3600, 3660),
        "messaging.purge_idempotency_keys": (3600, 3660),
        "push.sweep_devices": (3600, 3660),
    }
