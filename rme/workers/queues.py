"""The queues of tasks on the broker: of the type that `CELERY_QUEUE_TYPE` names.

RabbitMQ never changes the type of a queue. One of another type is deleted and created anew before
workers start: its tasks are hints, whose work is in the database.
"""

from typing import Any

from amqp.exceptions import AMQPError, PreconditionFailed
from django.core.exceptions import ImproperlyConfigured
from kombu import Connection, Queue
from kombu.exceptions import KombuError

from rme.celery import app
from rme.run.process import say


def create() -> None:
    """Create the queues that RabbitMQ does not have; do nothing if it does not answer, or for
    another broker.

    Raises ImproperlyConfigured for a queue of another type that is in use.
    """
    with app.connection_for_write() as broker:
        try:
            broker.ensure_connection(max_retries=0)
            if broker.transport.driver_type != "amqp":
                return
            for queue in app.conf.task_queues:
                _create(broker, queue)
        except (KombuError, AMQPError, OSError) as error:
            say(f"rme: the queues cannot be looked at ({type(error).__name__}); workers try again.")


def _create(broker: Connection, queue: Queue) -> None:
    try:
        queue(broker.channel()).declare()
    except PreconditionFailed:  # which has closed the channel
        _delete(broker, queue)
        queue(broker.channel()).declare()
        say(f"rme: the queue {queue.name} is of another type now.")


def _delete(broker: Connection, queue: Queue) -> None:
    channel: Any = broker.channel()
    # Quorum queues cannot be deleted on condition that they are unused.
    if channel.queue_declare(queue.name, passive=True).consumer_count:
        raise ImproperlyConfigured(
            f"The queue {queue.name} is of another type than CELERY_QUEUE_TYPE says, and workers "
            "use it: stop those that have another CELERY_QUEUE_TYPE first."
        )
    queue(channel).delete()
