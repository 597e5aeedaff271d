"""What each process of a worker does before its first task and after its last."""

from functools import partial
from typing import Any

from billiard.process import current_process
from celery.signals import worker_init, worker_process_init, worker_process_shutdown
from django.conf import settings

from messaging.delivery import late_outcomes, render_limit
from messaging.delivery.tasks import send_ready
from messaging.feedback import listeners
from messaging.feedback.tasks import request_callbacks
from rme.core.channels import Channel
from rme.core.db import availability
from rme.core.process import time_budget, worker
from rme.core.redis import counters
from rme.core.telemetry import tracing


@worker_init.connect
def allocate_slots(sender: Any, **_: Any) -> None:
    """Allocate a slot for each process of the pool, which holds what it is rendering."""
    time_budget.prepare(sender.concurrency)


@worker_process_init.connect
def begin_process(**_: object) -> None:
    """Bound the waits for the database, listen to providers, and look for work without a task."""
    availability.limit(settings.LEASE_SECONDS / 2)
    tracing.start()
    # The queue of SMS has the receipts, and the default one answers some inbound SMS.
    if {"sms", "default"} & worker.queues():
        listeners.start(request_callbacks)
    own = [channel for channel in Channel if channel.lower() in worker.queues()]
    sends = [(f"{send_ready.name} {each}", partial(send_ready.run, each)) for each in own]
    worker.begin([worker.Expected(*each) for each in sends])


@worker_process_init.connect
def take_slot(**_: object) -> None:
    """Fail the delivery whose rendering ended the process that had this slot before."""
    if step := time_budget.begin(current_process().index):  # type: ignore[attr-defined]  # the pool sets it
        render_limit.fail_later(step)


@worker_process_shutdown.connect
def end_process(**_: object) -> None:
    """Finish the task, store the outcomes in flight and what was counted, and unbind, before the
    process ends.
    """
    worker.end(settings.LEASE_SECONDS / 2)
    late_outcomes.finish(settings.LEASE_SECONDS / 2)
    listeners.stop()
    tracing.stop()
    counters.flush()
