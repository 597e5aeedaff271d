"""The Celery task of the archive."""

from celery import shared_task

from messaging.archive import job
from rme.core.db import availability, clock


@shared_task(name="messaging.archive")
@availability.unlimited()
def archive() -> None:
    """Move ended messages into files; a later run continues."""
    job.run(now=clock.now())
