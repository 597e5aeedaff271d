"""Celery tasks, and the bell that calls for them.

A task carries no ids: it asks the database what is ready, in the order that is fair at that
moment. So the broker never holds a backlog that one organization fills for all others, and losing
it loses nothing.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import structlog
from billiard.process import current_process
from celery import shared_task
from celery.signals import worker_init, worker_process_init, worker_process_shutdown
from django.conf import settings
from kombu.exceptions import KombuError
from redis import RedisError

from messaging.consent import suppression_import
from messaging.delivery import (
    claims,
    deliver,
    late_outcomes,
    provider_references,
    render_limit,
    retention,
    sweeper,
)
from messaging.delivery.accounts import concurrency, rates
from messaging.feedback import (
    callbacks,
    inbound_sms,
    listeners,
    polling,
    receipts,
    sms_parts,
    tracking,
)
from messaging.models import PARTITIONED
from messaging.policy import organization_policy
from messaging.webhooks import dispatcher, outbox
from rme.core.cache import TtlCache
from rme.core.channels import Channel
from rme.core.db import availability, clock, partitions
from rme.core.outbound import outbound_transport
from rme.core.process import time_budget, worker
from rme.core.redis import heartbeats
from rme.core.redis.wakeups import clear_wakeup, request_wakeup
from rme.tenants.oauth import assertions, tokens

log = structlog.get_logger(__name__)

TURN_SECONDS = 5.0
"""How long a task goes on while there is work; then it rings for another and makes room."""


_lost: TtlCache[str, bool] = TtlCache(seconds=1)
"""Filled while the broker or Redis is away: callers are answered without waiting for it."""


def ring(channels: set[str] | list[str], *, anew: bool = False) -> None:
    """Call a worker to each channel, unless one is called already. Never fails: the sweep rings
    again within a second where a call was lost, and tries it `anew`.
    """
    for channel in channels:
        order = partial(send_ready.apply_async, (channel,), queue=channel.lower())
        _call(channel, order, anew=anew)


def _call(
    name: str, order: Callable[..., object], *, once: bool = True, anew: bool = False
) -> None:
    """Order a task, with `once` unless it has been ordered and has not begun. Never fails."""
    if not anew and _lost.get("", lambda: None):
        return
    try:
        if not once or request_wakeup(name):
            order(ignore_result=True)
    except (RedisError, KombuError, OSError) as error:
        _lost.put("", True)
        log.warning("wakeup.lost", channel=name, error=type(error).__name__)


@shared_task(name="messaging.send_ready")
def send_ready(channel: str) -> None:
    """Send what is ready on a channel, one claim after the other."""
    clear_wakeup(channel)
    until = time.monotonic() + TURN_SECONDS
    called, several = False, claims.SEVERAL
    limits: dict[str, int] = {}  # by organization: what one's texts cost is no other's matter
    at_rate: set[str] = set()  # whose accounts may be sent no more: the sweep rings for them
    while waiting := claims.ready(channel, at_rate):
        started = time.monotonic()
        turn = [each for each, _ in claims.turn(waiting, several)]
        rooms = _rooms(channel, {each: limits.get(each, claims.WINDOW) for each in turn})
        at_rate.update(each for each, room in rooms.items() if not room)
        batches = claims.claim_many(channel, waiting[0][0], rooms)
        if any(claim.full for claim in batches) and not called:
            ring([channel])  # there is more than that: let another worker join
            called = True
        counts = deliver.deliver(
            batches, outbound_transport(), receipts.apply, partial(ring, [channel])
        )
        seconds = time.monotonic() - started
        limits |= {each: claims.size(count, seconds) for each, count in counts.items()}
        several = claims.breadth(len(batches), seconds)
        if time.monotonic() > until:
            ring([channel])
            return


def _rooms(channel: str, wanted: Mapping[str, int]) -> dict[str, int]:
    """Return how many of those wanted of each organization may leave now."""
    organization_policy.of_many(list(wanted))  # read for all at once
    free = concurrency.rooms(wanted, channel)
    some = {each: count for each, count in free.items() if count}
    return {**free, **rates.rooms(some, channel)}


@shared_task(name="messaging.sweep")
def sweep() -> None:
    """Do what time brings, and ring where something waits. Runs every second, by any beat."""
    until = time.monotonic() + TURN_SECONDS
    while sweeper.release() and time.monotonic() < until:
        ring(sweeper.waiting_channels(), anew=True)
    while sweeper.reclaim() == sweeper.BATCH:
        pass
    while sweeper.resolve_unknown() == sweeper.BATCH:
        pass
    while sweeper.fall_back() == sweeper.BATCH:
        pass
    ring(sweeper.waiting_channels(), anew=True)
    if not worker.is_unprompted():
        heartbeats.mark_alive("scheduler")


@shared_task(name="messaging.housekeeping")
@availability.unlimited()
def housekeeping() -> None:
    """Delete what has expired, make the partitions of the months to come, let old ones go."""
    callbacks.purge()
    sms_parts.purge()
    provider_references.purge()
    tracking.purge()
    outbox.purge()
    assertions.sweep()
    tokens.sweep()
    partitions.create_ahead([m._meta.db_table for m in PARTITIONED], now=clock.now())
    retention.apply(now=clock.now())


IMPORT_SECONDS = 1.0
"""How long an import goes on before others have their turn at the worker."""


def ring_import() -> None:
    """Call a worker to the imports. Never fails: the beat calls again within seconds."""
    _call("import", partial(import_suppressions.apply_async, queue="default"), once=False)


@shared_task(name="messaging.import_suppressions")
@availability.unlimited()
def import_suppressions() -> None:
    """Import files of suppressions, part by part. What was left behind is found by any beat."""
    until = time.monotonic() + IMPORT_SECONDS
    while suppression_import.work():
        if time.monotonic() > until:
            ring_import()
            return


def ring_callbacks() -> None:
    """Call a worker to what providers called us with, unless one is called already. Never fails."""
    _call("callbacks", partial(apply_callbacks.apply_async, queue="default"))


@shared_task(name="messaging.apply_callbacks")
def apply_callbacks() -> None:
    """Apply what providers called us with, batch by batch. Any beat finds what was left behind."""
    clear_wakeup("callbacks")
    until = time.monotonic() + TURN_SECONDS
    applied = callbacks.BATCH
    while applied == callbacks.BATCH:
        applied, answers = callbacks.work()
        inbound_sms.send(answers, outbound_transport())
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
    polling.poll(outbound_transport(), time.monotonic() + TURN_SECONDS)


@shared_task(name="messaging.notify_endpoints")
def notify_endpoints() -> None:
    """Tell endpoints of events. Ordered every second; one worker at a time does it."""
    dispatcher.notify()


@worker_init.connect
def make_places(sender: Any, **_: Any) -> None:
    """Make room for what each process of the pool is rendering."""
    time_budget.prepare(sender.concurrency)


@worker_process_init.connect
def begin_process(**_: Any) -> None:
    """Bound what the process waits for, listen in it, and look for work where no task comes."""
    availability.limit(settings.LEASE_SECONDS / 2)
    if {"sms", "default"} & worker.queues():  # who sends SMS: the channel's, and who answers some
        listeners.begin(ring_callbacks)
    own = [channel for channel in Channel if channel.lower() in worker.queues()]
    sends = [(f"{send_ready.name} {each}", partial(send_ready.run, each)) for each in own]
    worker.begin([worker.Expected(*each) for each in sends])


@worker_process_init.connect
def take_place(**_: Any) -> None:
    """Fail the delivery that ended the process whose place this one takes."""
    if step := time_budget.begin(current_process().index):  # type: ignore[attr-defined]
        render_limit.fail_later(step)


@worker_process_shutdown.connect
def end_process(**_: Any) -> None:
    """Finish what it has in hand, store what is in flight, and unbind, before the process ends."""
    worker.end(settings.LEASE_SECONDS / 2)
    late_outcomes.finish(settings.LEASE_SECONDS / 2)
    listeners.end()
