"""Celery tasks, and the bell that calls for them.

A task carries no ids: it asks the database what is ready, in the order that is fair at that
moment. So the broker never holds a backlog that one organization fills for all others, and losing
it loses nothing.
"""

import time
from typing import Any

import structlog
from billiard.process import current_process
from celery import shared_task
from celery.signals import (
    worker_init,
    worker_process_init,
    worker_process_shutdown,
    worker_ready,
)
from kombu.exceptions import KombuError
from redis import RedisError

from messaging import (
    callbacks,
    claiming,
    deliver,
    idempotency,
    inbound_sms,
    letters,
    listening,
    notices,
    notify,
    polling,
    rates,
    receipts,
    references,
    render_limit,
    retention,
    schedule,
    suppression_import,
    tracking,
)
from messaging.models import PARTITIONED
from rme.core import bell, clock, overruns, partitions, signs
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
    """Send what is ready on a channel, one claim after the other."""
    bell.answer(channel)
    until = time.monotonic() + TURN_SECONDS
    called, limit = False, claiming.WINDOW
    at_rate: set[str] = set()  # whose accounts may be sent no more: the sweep rings for them
    while waiting := [one for one in claiming.ready(channel) if one[1] not in at_rate]:
        for organization_id, priority in claiming.turn(waiting):
            started = time.monotonic()
            room = rates.room(organization_id, channel, limit)
            if not room:
                at_rate.add(organization_id)
                continue
            claim = claiming.claim(organization_id, channel, priority, room)
            if claim.full and not called:
                ring([channel])  # there is more than that: let another worker join
                called = True
            deliver.deliver(claim, shared(), receipts.apply)
            limit = claiming.size(len(claim.deliveries), time.monotonic() - started)
        if time.monotonic() > until:
            ring([channel])
            return


@shared_task(name="messaging.sweep")
def sweep() -> None:
    """Do what time brings, and ring where something waits. Runs every second, by any beat."""
    until = time.monotonic() + TURN_SECONDS
    while schedule.release() and time.monotonic() < until:
        ring(schedule.waiting_channels())
    while schedule.reclaim() == schedule.BATCH:
        pass
    while schedule.resolve_unknown() == schedule.BATCH:
        pass
    while schedule.fall_back() == schedule.BATCH:
        pass
    ring(schedule.waiting_channels())
    signs.leave("scheduler")


@shared_task(name="messaging.housekeeping")
def housekeeping() -> None:
    """Delete what has expired, make the partitions of the months to come, let old ones go."""
    idempotency.purge()
    callbacks.purge()
    letters.purge()
    references.purge()
    tracking.purge()
    notices.purge()
    assertions.sweep()
    tokens.sweep()
    partitions.create_ahead([m._meta.db_table for m in PARTITIONED], now=clock.now())
    retention.apply(now=clock.now())


IMPORT_SECONDS = 1.0
"""How long an import goes on before others have their turn at the worker."""


def ring_import() -> None:
    """Call a worker to the imports. Never fails: the beat calls again within seconds."""
    try:
        import_suppressions.apply_async(queue="default", ignore_result=True)
    except (RedisError, KombuError, OSError) as error:
        log.warning("bell.lost", channel="import", error=type(error).__name__)


@shared_task(name="messaging.import_suppressions")
def import_suppressions() -> None:
    """Import files of suppressions, part by part. What was left behind is found by any beat."""
    until = time.monotonic() + IMPORT_SECONDS
    while suppression_import.work():
        if time.monotonic() > until:
            ring_import()
            return


def ring_callbacks() -> None:
    """Call a worker to what providers called us with, unless one is called already. Never fails."""
    try:
        if bell.ring("callbacks"):
            apply_callbacks.apply_async(queue="default", ignore_result=True)
    except (RedisError, KombuError, OSError) as error:
        log.warning("bell.lost", channel="callbacks", error=type(error).__name__)


@shared_task(name="messaging.apply_callbacks")
def apply_callbacks() -> None:
    """Apply what providers called us with, batch by batch. Any beat finds what was left behind."""
    bell.answer("callbacks")
    until = time.monotonic() + TURN_SECONDS
    applied = callbacks.BATCH
    while applied == callbacks.BATCH:
        applied, answers = callbacks.work()
        inbound_sms.send(answers, shared())
        if time.monotonic() > until:
            ring_callbacks()
            return
    while tracking.work() == tracking.BATCH:
        if time.monotonic() > until:
            ring_callbacks()
            return


@shared_task(name="messaging.poll")
def poll() -> None:
    """Ask providers that cannot call us what became of messages."""
    polling.poll(shared(), time.monotonic() + TURN_SECONDS)


@shared_task(name="messaging.notify_endpoints")
def notify_endpoints() -> None:
    """Tell endpoints of events. Ordered every second; one worker at a time does it."""
    notify.notify()


@worker_ready.connect
def live(sender: Any, **_: Any) -> None:
    """Leave a worker's sign of life every few seconds, by the timer of its event loop."""
    signs.leave("worker")
    if former := getattr(sender, "sign_of_life", None):
        former.cancel()  # the worker is ready again after its broker was away
    sender.sign_of_life = sender.timer.call_repeatedly(
        signs.EVERY_SECONDS, signs.leave, ("worker",)
    )


@worker_init.connect
def make_places(sender: Any, **_: Any) -> None:
    """Make room for what each process of the pool is rendering."""
    overruns.prepare(sender.concurrency)


@worker_process_init.connect
def take_place(**_: Any) -> None:
    """Fail the delivery that ended the process whose place this one takes."""
    if step := overruns.begin(current_process().index):  # type: ignore[attr-defined]
        render_limit.fail_later(step)


@worker_process_init.connect
def listen(**_: Any) -> None:
    """Listen in each process that works, for it is the one that sends."""
    listening.begin(ring_callbacks)


@worker_process_shutdown.connect
def fall_silent(**_: Any) -> None:
    """Unbind before the process ends."""
    listening.end()
