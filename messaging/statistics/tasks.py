"""The Celery task of statistics: count the minutes that have passed."""

from time import monotonic

from celery import shared_task

from messaging.statistics import minutes
from rme.core.db import availability, clock

RUN_SECONDS = 2.0
"""How long one run counts before the worker takes other tasks; the next one continues."""


@shared_task(name="messaging.count_minutes")
@availability.unlimited()
def count_minutes() -> None:
    """Count slice by slice until the last closed minute."""
    until = monotonic() + RUN_SECONDS
    while minutes.count_slice(clock.now()) and monotonic() < until:
        pass
