"""Celery tasks of delivery.

A task carries no ids: it asks the database what is ready, in the order that is fair at that
moment. So the broker never holds a backlog that one organization fills for all others, and losing
it loses nothing.
"""

import time
from collections.abc import Callable
from functools import partial

from celery import shared_task

from messaging.delivery import accounts, claims, deliver, sweeper, wakeups
from messaging.delivery.sending_process import SendingProcess
from messaging.domain.accounts.admission import WINDOW
from messaging.feedback import receipts
from messaging.store import due_organizations
from rme.core.outbound import outbound_transport
from rme.core.process.task_requests import clear_wakeup
from rme.core.process.worker import WorkerTask
from rme.transport import Transport

RUN_SECONDS = 5.0
"""How long one run goes on while there is work; then it requests another."""
GATHER_SECONDS = 0.01
"""The pause of a run that has sent all that was ready. Messages that arrive one by one then leave
together: a claim and a window cost the same for one as for ten. The first never waits for it.
"""


class SendTask(WorkerTask):
    """A task that sends."""

    abstract = True
    process: SendingProcess
    """What its process has: set when that starts (`worker_process`)."""


@shared_task(name=wakeups.SEND_READY, base=SendTask, bind=True)
def send_ready(self: SendTask, channel: str) -> None:
    """Send what is ready on a channel."""
    send(channel, outbound_transport(), self.process)


def send(
    channel: str,
    transport: Transport,
    process: SendingProcess,
    pause: Callable[[float], object] = time.sleep,
) -> None:
    """Send what is ready on a channel, claim by claim. `pause` waits so many seconds."""
    clear_wakeup(channel)
    until = time.monotonic() + RUN_SECONDS
    has_woken, organizations = False, claims.FIRST_ORGANIZATIONS
    limits: dict[str, int] = {}  # by organization: one's slow texts make no other's claim smaller
    full: set[str] = set()  # their accounts take no more now; the sweeper wakes them later
    while ready_organizations := claims.ready(channel, full):
        started = time.monotonic()
        organization_ids = [
            each.organization_id for each in claims.choose(ready_organizations, organizations)
        ]
        rooms = accounts.rooms(
            {each: limits.get(each, WINDOW) for each in organization_ids},
            channel,
            process.load,
        )
        full.update(each for each, room in rooms.items() if not room)
        batches = claims.claim_many(channel, ready_organizations[0].priority, rooms)
        has_more = len(ready_organizations) > len(organization_ids) or any(
            batch.full for batch in batches
        )
        if any(batch.full for batch in batches) and not has_woken:
            wakeups.wake([channel])  # there is more than that: another worker joins
            has_woken = True
        counts = deliver.deliver(
            batches, transport, process, receipts.apply, partial(wakeups.wake, [channel])
        )
        seconds = time.monotonic() - started
        limits |= {each: claims.next_size(count, seconds) for each, count in counts.items()}
        organizations = claims.next_organizations(len(batches), seconds)
        if time.monotonic() > until:
            wakeups.wake([channel])
            return
        if not has_more:
            pause(GATHER_SECONDS)


@shared_task(name="messaging.sweep")
def sweep() -> None:
    """Release, recover and expire what is due, and wake the channels that have something ready.

    Beat requests it every second; any number may run at once.
    """
    until = time.monotonic() + RUN_SECONDS
    while sweeper.release() and time.monotonic() < until:
        wakeups.wake(due_organizations.waiting_channels(), retry=True)
    while sweeper.reclaim() == sweeper.BATCH:
        pass
    while sweeper.resolve_unknown() == sweeper.BATCH:
        pass
    while sweeper.fall_back() == sweeper.BATCH:
        pass
    wakeups.wake(due_organizations.waiting_channels(), retry=True)
