"""The job that moves ended messages into files, erases people in files, and deletes old files.

It works in steps that each end with a transaction, until its time is over; the next run goes on.
Only one runs at a time.
"""

from bisect import bisect_left
from datetime import datetime, timedelta
from time import monotonic

import structlog
from django.conf import settings

from messaging.models import ArchiveProgress
from rme.core.db import locks
from rme.tenants import organizations
from rme.tenants.models import Organization

log = structlog.get_logger(__name__)

TURN_SECONDS = 20.0
"""How long one run takes at most, but for the step that it is in."""
PAUSE = timedelta(hours=1)
"""How long messages are not looked for after all were moved: each organization costs a query."""
LOCK = "archive"


def run(*, now: datetime, at_once: bool = False) -> None:
    """Delete files that are to go, erase people in files, and move messages into files.

    After a run that moved all there was, messages are looked for an hour later, or at once.
    """
    from messaging.archive import stores  # it and what it is for import pyarrow

    with locks.alone(LOCK) as is_alone:
        if not is_alone:
            return
        progress, _ = ArchiveProgress.objects.get_or_create(pk=1)
        progress.failed_at, progress.failure = None, ""
        try:
            _work(progress, now, monotonic() + TURN_SECONDS, at_once)
        except stores.StoreFailed as error:
            log.warning("archive.failed", error=str(error))
            progress.failed_at, progress.failure = now, str(error)[:200]
        progress.save()


def _work(progress: ArchiveProgress, now: datetime, until: float, at_once: bool) -> None:
    from messaging.archive import moving, removal, rewriting  # they import pyarrow

    removal.claim_unfinished()
    if settings.ARCHIVE_RETENTION_DAYS:
        removal.claim_expired(now - timedelta(days=settings.ARCHIVE_RETENTION_DAYS))
    removal.delete()
    is_done = rewriting.erase(until)
    if not at_once and progress.up_to_date_at and now - progress.up_to_date_at < PAUSE:
        return
    cutoff = now - timedelta(days=settings.ARCHIVE_AFTER_DAYS)
    for organization_id in _from(progress.reached):
        if monotonic() > until:
            progress.reached = organization_id
            return
        is_done = moving.move(organization_id, cutoff, until) and is_done
    progress.reached = ""
    if is_done:
        progress.up_to_date_at = now


def _from(reached: str) -> list[str]:
    """Return the organizations, from the one on that the last run did not come to."""
    rows = Organization.objects.filter(organizations.served("pk")).order_by("pk")
    organization_ids = list(rows.values_list("pk", flat=True))
    start = bisect_left(organization_ids, reached)
    return organization_ids[start:] + organization_ids[:start]
