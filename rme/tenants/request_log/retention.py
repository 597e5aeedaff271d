"""Retention of the request log: partitions of a day, which are dropped whole."""

from datetime import datetime, timedelta

from django.conf import settings

from rme.core.db import partitions
from rme.core.db.periods import Period
from rme.tenants.models import RequestLogEntry

TABLE = RequestLogEntry._meta.db_table


def partition_periods() -> dict[str, Period]:
    """Return the length of the partitions, by the name of the table."""
    return {TABLE: Period.DAY}


def drop_old(*, now: datetime) -> None:
    """Drop the days that have passed entirely; one that is in use waits for the next run."""
    age = timedelta(days=settings.REQUEST_LOG_DAYS)
    for part in partitions.past([TABLE], before=now - age):
        partitions.drop(part)
