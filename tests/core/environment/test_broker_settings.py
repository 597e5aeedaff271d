"""The type of RabbitMQ's queues."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from rme.celery import app
from rme.core.environment import broker_settings
from rme.workers.consumer import Consumer

RABBIT = "amqp://user:password@host//"


def test_type_is_classic_unless_it_is_set():
    assert broker_settings.queue_type({}, "redis://host/0") == "classic"
    assert broker_settings.queue_type({"CELERY_QUEUE_TYPE": " Quorum"}, RABBIT) == "quorum"
    assert app.conf.task_default_queue_type == "classic"


@pytest.mark.parametrize(
    ("kind", "url", "told"),
    [
        ("lazy", RABBIT, "CELERY_QUEUE_TYPE=lazy: it is classic or quorum"),
        ("quorum", "redis://host/0", "CELERY_QUEUE_TYPE=quorum needs RabbitMQ"),
    ],
)
def test_unsupported_queue_type_is_rejected(kind, url, told):
    with pytest.raises(ImproperlyConfigured, match=told):
        broker_settings.queue_type({"CELERY_QUEUE_TYPE": kind}, url)


def test_consumer_creates_no_queues_for_countdowns():
    assert app.conf.worker_consumer == "rme.workers.consumer:Consumer"
    steps = [str(step) for step in Consumer.Blueprint.default_steps]
    assert any(step.endswith("consumer.tasks:Tasks") for step in steps)
    assert not any("delayed" in step for step in steps)
