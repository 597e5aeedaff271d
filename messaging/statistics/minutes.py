"""The job that counts minutes: closed minutes by sets, from the events and the attempts. What was
sent counts in the minute of its attempt. And it counts by status the messages of each hour in which
one has changed, so that they add up to the accepted messages: hours with few messages each minute,
all others every ten minutes.

Their ids begin with the time, so a minute is a range of the primary key. Each minute is counted
when it has passed, and again ten minutes later, when late commits and late outcomes are in; its
rows are replaced. After an outage the job continues where it stopped, slice by slice. One process
counts at a time; a second one finds the row of the progress locked, and ends.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from time import monotonic

from django.db import transaction

from messaging.domain.statuses import StatusReason
from messaging.models import CountedUntil, Delivery, Event, HourCount, MinuteCount
from messaging.store.reports import statistics
from messaging.store.reports.statistics import MINUTE
from rme.core import errors, ids
from rme.core.db import clock

HOUR = timedelta(hours=1)
GRACE = timedelta(seconds=5)
"""How long after its end a minute is counted: most of what belongs to it has been committed."""
FINAL_AFTER = timedelta(minutes=10)
"""How long after its end a minute is counted again, for the last time."""
SLICE = timedelta(minutes=5)
"""The most minutes that one transaction counts."""
BACKLOG = timedelta(days=14)
"""How far back the first run begins at most: two weeks, to compare one with the other."""
MINUTE_RETENTION, HOUR_RETENTION = timedelta(days=9), timedelta(days=90)
REASONS = sorted({*errors.by_code(), *(each.value for each in StatusReason)})
"""The reasons that accept and delivery give."""
STATUS_DAYS = timedelta(days=15)
"""How long the statuses of an hour's messages are counted anew when one changes: two weeks are
shown.
"""
STATUS_WINDOW = timedelta(minutes=10)
FEW = 20_000
"""The most deliveries whose statuses are counted anew each minute: a hundredth of a second."""
MANY = 3_000_000
"""The most whose statuses are counted anew every ten minutes: a few seconds. Older hours wait for
their turn, which each hour has once within the days.
"""
EPOCH, TICK = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=2**16)
"""The first eight digits of an id count these since then."""
PURGE_BATCH, PURGE_SECONDS = 10_000, 10.0


def hour_of(moment: datetime) -> datetime:
    """Return the beginning of an instant's hour."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _minute_of(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(second=0, microsecond=0)


def count_slice(now: datetime, few: int = FEW, many: int = MANY) -> bool:
    """Count the next slice; return whether one was found. Two at once do no harm."""
    with transaction.atomic():
        progress = _locked(now)
        if progress is None:
            return False
        final, first = _minute_of(now - FINAL_AFTER), _minute_of(now - GRACE)
        if progress.final_until < final:
            start, end = progress.final_until, min(final, progress.final_until + SLICE)
            _count(start, end)
            if (first_hour := hour_of(start)) < (last_hour := hour_of(end)):
                statistics.sum_hours(first_hour, last_hour)
            progress.final_until = end
            progress.first_until = max(progress.first_until, end)
            if _window_of(start) < _window_of(end):
                hours = _changed_hours(_window_of(start), _window_of(end))
                hours = [*_small(hours, many), *_next_in_turn(end)]
                statistics.count_statuses(sorted({*hours}), progress.first_until, REASONS)
        elif progress.first_until < first:
            start, end = progress.first_until, min(first, progress.first_until + SLICE)
            _count(start, end)
            progress.first_until = end
            statistics.count_statuses(_small(_changed_hours(start, end), few), end, REASONS)
        else:
            return False
        progress.save()
    return True


def read_progress() -> CountedUntil | None:
    """Return how far the job has counted; None before its first run."""
    return CountedUntil.objects.filter(pk=CountedUntil.ONLY).first()


def _locked(now: datetime) -> CountedUntil | None:
    """Lock and return the progress; None while another process counts."""
    rows = CountedUntil.objects.select_for_update(skip_locked=True)
    if (row := rows.filter(pk=CountedUntil.ONLY).first()) is not None:
        return row
    start = _first_hour(now)
    new = CountedUntil(first_until=start, final_until=start)
    CountedUntil.objects.bulk_create([new], ignore_conflicts=True)
    return rows.filter(pk=CountedUntil.ONLY).first()


def _first_hour(now: datetime) -> datetime:
    """Return the hour with which the first run begins: that of the first event or delivery.

    Or the one before: a worker whose clock is behind gives its attempts earlier ids.
    """
    since = ids.at_least(now - BACKLOG)
    oldest = [
        model._default_manager.filter(pk__gte=since).order_by("pk").first()
        for model in (Event, Delivery)
    ]
    return hour_of(min([now, *(ids.moment(row.pk) for row in oldest if row)]) - FINAL_AFTER)


def _count(start: datetime, end: datetime) -> None:
    """Count the minutes from `start` to `end`, and replace their rows."""
    statistics.count_minutes(start, end, REASONS)


def _window_of(moment: datetime) -> datetime:
    return moment - (moment - EPOCH) % STATUS_WINDOW


def _changed_hours(start: datetime, end: datetime) -> list[datetime]:
    """Return the hours of messages whose deliveries were accepted or changed from `start` to `end`,
    latest first.
    """
    hours = {hour_of(start), hour_of(end - MINUTE)}
    for beginning in statistics.read_changed(start, end):
        first = EPOCH + TICK * int(beginning, 16)
        hours |= {hour_of(first), hour_of(first + TICK)}
    return sorted((h for h in hours if end - STATUS_DAYS <= h < end), reverse=True)


def _next_in_turn(end: datetime) -> list[datetime]:
    """Return the hour whose turn it is to be counted, whether it has changed or not."""
    hours = STATUS_DAYS // HOUR
    return [hour_of(end) - HOUR * ((end - EPOCH) // STATUS_WINDOW % hours)]


def _small(hours: Sequence[datetime], few: int) -> list[datetime]:
    """Return those hours, from the first, that had few deliveries together when last counted."""
    sizes = statistics.read_sizes(hours)
    sums = accumulate(sizes.get(hour, 0) for hour in hours)
    return [hour for hour, deliveries in zip(hours, sums, strict=True) if deliveries <= few]


def purge() -> None:
    """Delete minutes and hours that have been kept long enough, in batches."""
    until = monotonic() + PURGE_SECONDS
    now = clock.now()
    retained = ((MinuteCount, MINUTE_RETENTION), (HourCount, HOUR_RETENTION))
    for table, retention in retained:
        deleted = PURGE_BATCH
        while deleted == PURGE_BATCH and monotonic() < until:
            deleted = statistics.delete_old(table, now - retention, PURGE_BATCH)
