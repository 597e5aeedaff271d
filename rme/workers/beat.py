"""Beat's scheduler: it stores nothing, and publishes no hints to queues whose workers are away."""

from typing import Any

import structlog
from amqp.exceptions import PreconditionFailed
from celery.beat import ScheduleEntry, Scheduler
from django.conf import settings
from kombu.exceptions import OperationalError

from rme.core.process import liveness

log = structlog.get_logger(__name__)

WAITING_LIMIT = 100
"""The number of hints that may wait in a queue; with more, its workers are away."""


class HintScheduler(Scheduler):
    """Publishes the hints of the periodic tasks. It does not know when a job ran last."""

    def setup_schedule(self) -> None:
        super().setup_schedule()
        liveness.begin(settings.VAR, "beat")

    def tick(self, *arguments: Any, **options: Any) -> float:
        delay: float = super().tick(*arguments, **options)
        liveness.extend()
        return delay

    def _ensure_connected(self) -> Any:
        """Connect to the broker; count as alive while it is away, since no restart heals that."""

        def wait(error: BaseException, seconds: float) -> None:
            log.warning("beat.broker_away", error=type(error).__name__, seconds=seconds)
            liveness.extend(seconds + liveness.IDLE_SECONDS)

        return self.connection.ensure_connection(wait, self.app.conf.broker_connection_max_retries)

    def apply_async(
        self, entry: ScheduleEntry, producer: Any = None, advance: bool = True, **options: object
    ) -> object:
        if self._waiting(entry) >= WAITING_LIMIT:
            return None
        return super().apply_async(entry, producer=producer, advance=advance, **options)

    def _waiting(self, entry: ScheduleEntry) -> int:
        """Return how many tasks wait in the queue of an entry; 0 if the broker is away."""
        queue = (entry.options or {}).get("queue", self.app.conf.task_default_queue)
        lost: tuple[type[BaseException], ...] = self.connection.recoverable_connection_errors
        lost += (*self.connection.recoverable_channel_errors, OperationalError, PreconditionFailed)
        arguments = self.app.amqp.queues[queue].queue_arguments
        try:
            # The connection's own channel, which kombu opens again after it was lost.
            channel: Any = self.connection.default_channel
            declared = channel.queue_declare(
                queue, durable=True, auto_delete=False, arguments=arguments
            )
        except lost:
            return 0  # publishing logs it, and connects again; or the queue is of another type
        return int(declared.message_count)
