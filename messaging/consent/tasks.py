"""Celery tasks of consent: the import of suppressions from files, and the retention of contents."""

import time

from celery import shared_task

from messaging.consent import retention, suppression_import
from rme.core.db import availability, clock
from rme.core.process import task_requests

IMPORT_SECONDS = 1.0
"""How long one run imports before the worker takes other tasks."""


def request_import() -> None:
    """Request a worker for the imports. Never fails: beat requests it again within seconds."""
    task_requests.request(import_suppressions.name)


@shared_task(name="messaging.import_suppressions")
@availability.unlimited()
def import_suppressions() -> None:
    """Import files of suppressions, part by part; a later run goes on with what is left."""
    until = time.monotonic() + IMPORT_SECONDS
    while suppression_import.work():
        if time.monotonic() > until:
            request_import()
            return


@shared_task(name="messaging.drop_contents")
@availability.unlimited()
def drop_contents() -> None:
    """Delete contents that have been kept long enough; a later run goes on with what is left."""
    retention.apply_to_contents(now=clock.now())
