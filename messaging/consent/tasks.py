"""Celery tasks of consent: imports of suppressions, retention of contents, verifications of the
ledger, and requests for data exports and erasures.
"""

import time

from celery import shared_task

from messaging.consent import suppression_import
from messaging.consent.chain import checks
from messaging.consent.privacy import answers
from messaging.models import SuppressionImport
from messaging.store import retention
from rme.core.db import availability, clock
from rme.core.process import task_requests
from rme.tenants import imports

IMPORT_SECONDS = 1.0
"""How long one run imports before the worker takes other tasks."""
RUN_SECONDS = 2.0
"""How long one run verifies or answers before the worker takes other tasks."""


def request_import() -> None:
    """Request a worker for the imports. Never fails: beat requests it again within seconds."""
    task_requests.request(import_suppressions.name)


@shared_task(name="messaging.import_suppressions")
@availability.unlimited()
def import_suppressions() -> None:
    """Import files of suppressions, part by part; a later run continues."""
    imports.discard_abandoned(SuppressionImport)
    until = time.monotonic() + IMPORT_SECONDS
    while suppression_import.work():
        if time.monotonic() > until:
            request_import()
            return


@shared_task(name="messaging.drop_contents")
@availability.unlimited()
def drop_contents() -> None:
    """Delete contents that have been kept long enough; a later run continues."""
    retention.apply_to_contents(now=clock.now())


def request_verification() -> None:
    """Request a worker for the verifications. Never fails: beat requests it again."""
    task_requests.request(verify_ledgers.name)


@shared_task(name="messaging.verify_ledgers")
@availability.unlimited()
def verify_ledgers() -> None:
    """Verify ledgers, slice by slice; a later run continues."""
    until = time.monotonic() + RUN_SECONDS
    while checks.work():
        if time.monotonic() > until:
            request_verification()
            return


def request_answers() -> None:
    """Request a worker for exports and erasures. Never fails: beat requests it again."""
    task_requests.request(answer_privacy_requests.name)


@shared_task(name="messaging.answer_privacy_requests")
@availability.unlimited()
def answer_privacy_requests() -> None:
    """Carry out the requests that were ordered, and delete files that have expired."""
    until = time.monotonic() + RUN_SECONDS
    while answers.work():
        if time.monotonic() > until:
            request_answers()
            return
    answers.delete_expired()
