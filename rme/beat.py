"""Beat's scheduler: it keeps nothing on disk, and stops giving hints that nobody takes."""

from typing import Any

from celery.beat import ScheduleEntry, Scheduler
from kombu.exceptions import OperationalError

WAITING_LIMIT = 100
"""So many hints may wait in a queue: where there are more, its workers are away."""


class HintScheduler(Scheduler):
    """Publish the hints of the periodic tasks. When a job ran last is not beat's to know."""

    def apply_async(
        self, entry: ScheduleEntry, producer: Any = None, advance: bool = True, **options: Any
    ) -> Any:
        if self._waiting(entry) >= WAITING_LIMIT:
            return None
        return super().apply_async(entry, producer=producer, advance=advance, **options)

    def _waiting(self, entry: ScheduleEntry) -> int:
        """Return how many tasks wait in the queue of an entry; none if that cannot be known."""
        queue = (entry.options or {}).get("queue", self.app.conf.task_default_queue)
        lost: tuple[type[BaseException], ...] = self.connection.recoverable_connection_errors
        lost += (*self.connection.recoverable_channel_errors, OperationalError)
        try:
            # The connection's own channel, which is made again after it was lost.
            channel: Any = self.connection.default_channel
            found = channel.queue_declare(queue, durable=True, auto_delete=False)
        except lost:
            return 0  # publishing tells of it, and connects again
        return int(found.message_count)
