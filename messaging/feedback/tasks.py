"""Celery tasks of feedback: provider callbacks, and the providers that have to be polled."""

import time

from celery import shared_task

from messaging.feedback import callbacks, inbound_sms, polling, tracking
from rme.core.outbound import outbound_transport
from rme.core.process import task_requests

RUN_SECONDS = 5.0
"""How long one run goes on while there is work."""
_CALLBACKS = "callbacks"


def request_callbacks() -> None:
    """Request a worker for stored callbacks, unless one is on its way. Never fails."""
    task_requests.request_once(_CALLBACKS, apply_callbacks.name)


@shared_task(name="messaging.apply_callbacks")
def apply_callbacks() -> None:
    """Apply stored callbacks and tracking hits, batch by batch; a later run goes on."""
    task_requests.clear_wakeup(_CALLBACKS)
    until = time.monotonic() + RUN_SECONDS
    applied = callbacks.BATCH
    while applied == callbacks.BATCH:
        applied, replies = callbacks.apply_due()
        inbound_sms.send_replies(replies, outbound_transport())
        if time.monotonic() > until:
            request_callbacks()
            return
    while tracking.apply_due() == tracking.BATCH:
        if time.monotonic() > until:
            request_callbacks()
            return


@shared_task(name="messaging.poll")
def poll() -> None:
    """Poll the providers that make no callbacks for the status of messages."""
    polling.poll(outbound_transport(), time.monotonic() + RUN_SECONDS)
