"""Wake the workers of a channel: request the task that sends what is ready on it."""

from collections.abc import Collection

from rme.core.process import task_requests

SEND_READY = "messaging.send_ready"
"""The task's name: what accepts messages need not load what sends them."""


def wake(channels: Collection[str], *, retry: bool = False) -> None:
    """Request a worker for each channel, unless one is on its way. Never fails.

    The sweeper wakes what still waits a second later, with `retry`: it tries the broker again.
    """
    for channel in channels:
        task_requests.request_once(channel, SEND_READY, channel, queue=channel.lower(), retry=retry)
