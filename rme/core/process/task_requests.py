"""Request a task of the workers. It never fails, since a task is only a hint: beat requests each
again within seconds, and its work is in the database.

Thousands of accepts a second need one worker to look for work, not thousands of tasks. A wakeup is
a key in Redis: only the caller that sets it enqueues a task, and the worker deletes it before it
looks for work. It expires, so that a task that the broker lost blocks its channel for some seconds
only.
"""

import structlog
from amqp.exceptions import AMQPError
from celery import current_app
from kombu.exceptions import KombuError
from redis import RedisError

from rme.core.absence import Absence
from rme.core.redis.connection import command

log = structlog.get_logger(__name__)

LOST_AFTER_MS = 3000
"""When a wakeup expires."""
AWAY_SECONDS = 1.0
"""The pause after the broker or Redis could not be reached, in which no caller tries them."""
absence = Absence(AWAY_SECONDS)


def request_once(
    name: str, task: str, *arguments: str, queue: str = "default", retry: bool = False
) -> None:
    """Request a task unless a request of this name waits for a worker.

    `retry` tries it even where the broker was away a moment ago.
    """
    _request(name, task, arguments, queue=queue, once=True, retry=retry)


def request(task: str, *, queue: str = "default") -> None:
    """Request a task."""
    _request(task, task, (), queue=queue, once=False, retry=False)


def request_with(task: str, *arguments: str) -> None:
    """Request a task whose arguments are its only record: while the broker is away it is lost."""
    _request(task, task, arguments, queue="default", once=False, retry=True)


def _request(
    name: str, task: str, arguments: tuple[str, ...], *, queue: str, once: bool, retry: bool
) -> None:
    if not retry and not absence.may_try():
        return
    try:
        if not once or set_wakeup(name):
            current_app.send_task(task, arguments, queue=queue, ignore_result=True)
        absence.note_answer()
    except (RedisError, KombuError, AMQPError, OSError) as error:
        absence.note_failure()
        log.warning("wakeup.lost", name=name, error=type(error).__name__)


def set_wakeup(name: str) -> bool:
    """Set a wakeup; return whether none was pending, so a task is needed. Raise RedisError."""
    return command("SET", _key(name), 1, "NX", "PX", LOST_AFTER_MS) is not None


def clear_wakeup(name: str) -> None:
    """Delete the wakeup that brought this worker, before it looks for work.

    Never fails: where Redis is away, the key expires by itself.
    """
    try:
        command("DEL", _key(name))
    except RedisError as error:
        log.warning("wakeup.not_cleared", channel=name, error=type(error).__name__)


def _key(name: str) -> str:
    # A worker of another release may use another key. Then the wakeup stays until it expires.
    return f"rme:wakeup:{name}"
