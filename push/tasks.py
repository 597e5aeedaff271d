"""Celery tasks of devices. They have no arguments: the work is in the database."""

import structlog
from celery import shared_task

from push import feedback

log = structlog.get_logger(__name__)


@shared_task(name="push.retire_devices")
def retire_devices() -> None:
    """Deactivate the devices whose tokens were reported dead."""
    taken = feedback.BATCH
    while taken == feedback.BATCH:
        taken, retired = feedback.retire()
        if retired:
            log.info("push.retired", count=retired)


@shared_task(name="push.sweep_devices")
def sweep_devices() -> None:
    """Deactivate the Android devices that were not seen for 270 days."""
    while (count := feedback.sweep()) == feedback.BATCH:
        log.info("push.stale", count=count)
