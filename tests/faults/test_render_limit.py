"""A delivery that hangs while a real worker renders it: it fails, and nothing else does."""

import os
import subprocess
import sys
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.conf import settings as deployment
from django.db import connection

from messaging.models import Delivery
from rme.core.redis.connection import redis_client
from tests import factories
from tests.faults import hanging
from tests.messaging.delivery.test_render_limit import LOOPS
from tests.rest import Api, message
from tests.service import ROOT, wait_for

pytestmark = pytest.mark.django_db(transaction=True)

QUEUE = f"tests-{uuid4().hex}"


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
        "RENDER_SECONDS": "0.5",
    }
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "rme.celery", "worker"]
    command += ["--include", "tests.faults.hanging", "--queues", QUEUE, "--concurrency", "1"]
    command += ["--loglevel", "WARNING"]
    command += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    process = subprocess.Popen(command, cwd=ROOT, env=env)
    yield process
    process.terminate()
    process.wait(30)


def send(org):
    """Have the worker send what is ready; return its process and how many it sent."""
    with hanging.app.connection_for_write(deployment.CELERY_BROKER_URL) as broker:
        hanging.send.apply_async((org.pk,), queue=QUEUE, connection=broker)
    wait_for(lambda: redis_client().llen(hanging.RUNS), 90)
    return redis_client().lpop(hanging.RUNS).decode().split()


def test_delivery_hanging_in_native_code_fails_alone(process):
    org = factories.organization()
    factories.template(org, name="loops", subject="Hello", text=LOOPS)
    turns = [1, 9000, 1]
    bodies = [
        message(
            person,
            template={"name": "loops", "language": "en_US"},
            context={"variables": {"n": count}},
        )
        for person, count in zip(factories.contacts(org, 3), turns, strict=True)
    ]
    results = Api(org).bulk(bodies).json()["results"]
    runs = [send(org), send(org)]  # what the first released is sent by the second
    rows = Delivery.objects.values_list("message_id", "status", "reason", "detail")
    found = {str(message_id): values for message_id, *values in rows}
    hung = ["FAILED", "TEMPLATE_ERROR", "rendering takes too long"]
    statuses = [found[result["messageId"]] for result in results]
    assert statuses[1] == hung
    assert {statuses[0][0], statuses[2][0]} <= {"SENT", "DELIVERED"}
    assert len({worker_process for worker_process, _ in runs}) == 1


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
