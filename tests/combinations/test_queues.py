"""RabbitMQ's queues change their type while no process uses them."""

import os
import subprocess
import sys

import pytest
from kombu import Connection, Consumer, Queue

from tests.faults.rabbitmq import SERVER, RabbitMQ
from tests.service import ROOT

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not SERVER.exists(), reason="RabbitMQ is not installed: make broker"),
]

CREATE = """
import django; django.setup()
from rme.workers import queues
from rme.core.process import task_requests
if "create" in sys.argv: queues.create()
task_requests.request("messaging.sweep", queue="sweep")
"""
TYPES = ("email", "sms", "push", "sweep", "webhooks", "default")


@pytest.fixture(scope="module")
def rabbit(tmp_path_factory):
    found = RabbitMQ(tmp_path_factory.mktemp("rabbitmq"))
    found.start()
    yield found
    found.stop()


def run(rabbit, kind, *arguments):
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "rme.settings", "CELERY_QUEUE_TYPE": kind}
    return subprocess.run(
        [sys.executable, "-c", f"import sys{CREATE}", *arguments],
        env={**env, "CELERY_BROKER_URL": rabbit.url},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def waiting(rabbit):
    with Connection(rabbit.url) as broker:
        channel = broker.channel()
        return channel.queue_declare("sweep", passive=True).message_count


def test_queues_are_replaced_when_their_type_changes(rabbit):
    replaced = "".join(f"rme: the queue {name} is of another type now.\n" for name in TYPES)
    for kind, told in (
        ("classic", ""),
        ("quorum", replaced),
        ("quorum", ""),
        ("classic", replaced),
    ):
        done = run(rabbit, kind, "create")
        assert (done.returncode, done.stderr) == (0, told)
    assert waiting(rabbit) == 1


def test_queue_in_use_keeps_its_type_and_mismatched_hints_are_lost(rabbit):
    assert run(rabbit, "classic", "create").returncode == 0
    before = waiting(rabbit)
    lost = run(rabbit, "quorum")  # as a web process with another setting than the workers'
    assert lost.returncode == 0
    assert "wakeup.lost" in lost.stdout + lost.stderr
    with Connection(rabbit.url) as broker, Consumer(broker, [Queue("email", no_declare=True)]):
        refused = run(rabbit, "quorum", "create")
    assert refused.returncode == 1
    assert "The queue email is of another type than CELERY_QUEUE_TYPE says" in refused.stderr
    assert waiting(rabbit) == before
