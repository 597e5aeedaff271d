"""Beat's scheduler: it keeps nothing on disk, and stops giving hints that nobody takes."""

from typing import Any

from celery.beat import ScheduleEntry, Scheduler

WAITING_LIMIT = 100
"""So many hints may wait in a queue: where there are more, its workers are away."""


class HintScheduler(Scheduler):
    """Publish the hints of the periodic tasks. When a job ran last is not beat's to know."""

    def apply_async(
        self, entry: ScheduleEntry, producer: Any = None, advance: bool = True, **options: Any
    ) -> Any:
        if producer is not None and self._waiting(entry, producer) >= WAITING_LIMIT:
            return None
        return super().apply_async(entry, producer=producer, advance=advance, **options)

    def _waiting(self, entry: ScheduleEntry, producer: Any) -> int:
        """Return how many tasks wait in the queue of an entry."""
        queue = (entry.options or {}).get("queue", self.app.conf.task_default_queue)
        lost = self.connection.recoverable_connection_errors
        try:
            declared = producer.channel.queue_declare(queue, durable=True, auto_delete=False)
        except (*lost, *self.connection.recoverable_channel_errors):
            return 0  # publishing connects again
        return int(declared.message_count)
