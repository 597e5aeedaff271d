"""What each process of a worker does before its first task and after its last."""

from functools import partial

from celery.signals import worker_process_init, worker_process_shutdown
from django.conf import settings

from messaging.delivery.sending_process import SendingProcess
from messaging.delivery.tasks import send_ready
from messaging.domain.channels import Channel
from messaging.feedback import listeners
from messaging.feedback.tasks import request_callbacks
from rme.core.db import availability
from rme.core.process import worker
from rme.core.telemetry import tracing


@worker_process_init.connect
def begin_process(**_: object) -> None:
    """Bound the waits for the database, listen to providers, and look for work without a task."""
    availability.limit(settings.LEASE_SECONDS / 2)
    tracing.start()
    send_ready.process = SendingProcess()
    # The queue of SMS has the receipts, and the default one answers some inbound SMS.
    if {"sms", "default"} & worker.queues():
        listeners.start(request_callbacks)
    channels = [channel for channel in Channel if channel.lower() in worker.queues()]
    sends = [(f"{send_ready.name} {each}", partial(send_ready.run, each)) for each in channels]
    worker.begin([worker.Expected(*each) for each in sends])


@worker_process_shutdown.connect
def end_process(**_: object) -> None:
    """Finish the task, store the outcomes in flight, and unbind, before the process ends."""
    worker.end(settings.LEASE_SECONDS / 2)
    send_ready.process.late_outcomes.finish(settings.LEASE_SECONDS / 2)
    listeners.stop()
    tracing.stop()
