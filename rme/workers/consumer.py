"""Celery's consumer, without queues for tasks with a countdown."""

from celery.worker import consumer


class Consumer(consumer.Consumer):
    """A consumer that creates no queues but ours.

    With quorum queues Celery creates 28 more, for delays of up to 2^28 seconds, each with copies on
    several nodes. No task has a countdown.
    """

    class Blueprint(consumer.Consumer.Blueprint):  # type: ignore[misc, valid-type]  # a class in Celery
        """Celery's steps but one."""

        default_steps = [
            step
            for step in consumer.Consumer.Blueprint.default_steps
            if not str(step).endswith("DelayedDelivery")
        ]
