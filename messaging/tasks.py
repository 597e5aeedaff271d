"""Celery tasks, and the bell that calls for them.

A task carries no ids: it asks the database what is ready, in the order that is fair at that
moment. So the broker never holds a backlog that one organization fills for all others, and losing
it loses nothing.
"""

import time

import structlog
from celery import shared_task
from kombu.exceptions import KombuError
from redis import RedisError

from messaging import claiming, deliver, idempotency, receipts, schedule
from messaging.models import PARTITIONED
from rme.core import bell, clock, partitions
from rme.core.transport import shared
from rme.tenants.oauth import assertions, tokens

log = structlog.get_logger(__name__)

TURN_SECONDS = 5.0
"""How long a task goes on while there is work; then it rings for another and makes room."""


def ring(channels: set[str] | list[str]) -> None:
    """Call a worker to each channel, unless one is called already. Never fails: the sweep rings
    again within a second where a call was lost.
    """
    for channel in channels:
        try:
            if bell.ring(channel):
                send_ready.apply_async((channel,), queue=channel.lower(), ignore_result=True)
        except (RedisError, KombuError, OSError) as error:
            log.warning("bell.lost", channel=channel, error=type(error).__name__)


@shared_task(name="messaging.send_ready")
def send_ready(channel: str) -> None:
    """Send what is ready on a channel, one window after the other."""
    bell.answer(channel)
    until = time.monotonic() + TURN_SECONDS
    called = False
    while waiting := claiming.ready(channel):
        for organization_id, priority in claiming.turn(waiting):
            window = claiming.claim(organization_id, channel, priority)
            if window.full and not called:
                ring([channel])  # there is more than a window: let another worker join
                called = True
            receipts.apply(deliver.deliver(window, shared()))
        if time.monotonic() > until:
            ring([channel])
            return


@shared_task(name="messaging.sweep")
def sweep() -> None:
    """Do what time brings, and ring where something waits. Runs every second, by any beat."""
    while schedule.release() == schedule.BATCH:
        pass
    while schedule.reclaim() == schedule.BATCH:
        pass
    while schedule.resolve_unknown() == schedule.BATCH:
        pass
    while schedule.fall_back() == schedule.BATCH:
        pass
    ring(schedule.waiting_channels())


@shared_task(name="messaging.housekeeping")
def housekeeping() -> None:
    """Delete what has expired and make the partitions of the months to come."""
    idempotency.purge()
    assertions.sweep()
    tokens.sweep()
    partitions.create_ahead([m._meta.db_table for m in PARTITIONED], now=clock.now())
