"""Celery tasks of the records. A task is a hint: if one is lost, beat requests it again."""

import time

from celery import shared_task

from rme.core.db import availability
from rme.core.process import task_requests
from rme.crm.models import RecordImport
from rme.crm.records import import_file
from rme.tenants import imports

IMPORT_SECONDS = 1.0
"""How long one run imports before the worker takes other tasks."""


def request_import() -> None:
    """Request a worker for the imports. Never fails: beat requests it again within seconds."""
    task_requests.request(import_records.name)


@shared_task(name="crm.import_records")
@availability.unlimited()
def import_records() -> None:
    """Import files of records, part by part."""
    imports.discard_abandoned(RecordImport)
    until = time.monotonic() + IMPORT_SECONDS
    while import_file.import_next_part():
        if time.monotonic() > until:
            request_import()
            return
