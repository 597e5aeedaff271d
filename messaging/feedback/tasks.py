"""Celery tasks of feedback: provider callbacks, polling, and devices whose tokens are dead."""

import time

import structlog
from celery import shared_task

from messaging.feedback import callbacks, inbound_sms, polling, tracking
from messaging.store.feedback import callbacks as stored_callbacks
from messaging.store.feedback import hits
from messaging.webhooks import device_events
from push import feedback as push_feedback
from rme.core.outbound import outbound_transport
from rme.core.process import task_requests

log = structlog.get_logger(__name__)

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
    applied = stored_callbacks.BATCH
    while applied == stored_callbacks.BATCH:
        try:
            applied, replies = callbacks.apply_due()
        except MemoryError:  # of the process, not of a callback
            raise
        except Exception as error:
            if not callbacks.is_defect(error):
                raise
            log.exception("callbacks.failed")
            applied = _apply_one_by_one()
        else:
            inbound_sms.send_replies(replies, outbound_transport())
        if time.monotonic() > until:
            request_callbacks()
            return
    while tracking.apply_due() == hits.BATCH:
        if time.monotonic() > until:
            request_callbacks()
            return


def _apply_one_by_one() -> int:
    """Apply the callbacks of a batch that failed, each by itself; return how many."""
    for count in range(stored_callbacks.BATCH):
        applied, replies = callbacks.apply_next()
        if not applied:
            return count
        inbound_sms.send_replies(replies, outbound_transport())
    return stored_callbacks.BATCH


@shared_task(name="messaging.poll")
def poll() -> None:
    """Poll the providers that make no callbacks for the status of messages."""
    polling.poll(outbound_transport(), time.monotonic() + RUN_SECONDS)


@shared_task(name="push.retire_devices")
def retire_devices() -> None:
    """Deactivate the devices whose tokens were reported dead."""
    count_read = push_feedback.BATCH
    while count_read == push_feedback.BATCH:
        count_read, retired = push_feedback.retire(device_events.write)
        if retired:
            log.info("push.retired", count=retired)


@shared_task(name="push.sweep_devices")
def retire_unseen_devices() -> None:
    """Deactivate the Android devices that were not seen for 270 days."""
    while (count := push_feedback.retire_unseen(device_events.write)) == push_feedback.BATCH:
        log.info("push.stale", count=count)
