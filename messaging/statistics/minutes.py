"""The job that counts minutes: closed minutes by sets, from the events and the attempts. What was
sent counts in the minute of its attempt.

Their ids begin with the time, so a minute is a range of the primary key. Each minute is counted
when it has passed, and again ten minutes later, when late commits and late outcomes are in; its
rows are replaced. After an outage the job continues where it stopped, slice by slice. One process
counts at a time; a second one finds the row of the progress locked, and ends.

SQL, because a slice of many minutes is grouped and stored by one statement, which no index but the
primary key serves.
"""

from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

from django.db import connection, transaction

from messaging.models import (
    Attempt,
    CountedOutcome,
    CountedUntil,
    Delivery,
    Event,
    HourCount,
    Message,
    MinuteCount,
    derived_events,
)
from messaging.models.statuses import StatusReason
from messaging.statistics.latencies import BOUNDS, BUCKETS
from rme.core import errors, ids
from rme.core.db import clock, sql

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
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
PURGE_BATCH, PURGE_SECONDS = 10_000, 10.0

_MINUTES, _HOURS = MinuteCount._meta.db_table, HourCount._meta.db_table
_EVENTS, _ATTEMPTS = Event._meta.db_table, Attempt._meta.db_table
_DELIVERIES, _MESSAGES = Delivery._meta.db_table, Message._meta.db_table

_KEY = "organization_id, at, test, channel, account_id, outcome, reason"
_BUCKETS = ", ".join(
    f"coalesce(sum(n) FILTER (WHERE bucket = {bucket}), 0)" for bucket in range(BUCKETS)
)
_LATENCY = f"""width_bucket(1000 * date_part('epoch', e.at - greatest(
    coalesce(r.scheduled_for, d.scheduled_for), coalesce(r.accepted_at, d.accepted_at,
      (SELECT created_at FROM {_MESSAGES} WHERE {sql.by_key("id", "e.message_id")})
    ))), ARRAY{list(BOUNDS)}::float8[])"""

_IN_MINUTE = "{0}.id >= span.first AND {0}.id < span.last".format
_OF_MINUTE = derived_events.select(
    f"""{_IN_MINUTE("stored")} AND stored.type IN (
    'accepted', 'sent', 'delivered', 'failed', 'bounced', 'blocked', 'expired', 'cancelled')""",
    _IN_MINUTE("accepted"),
    _IN_MINUTE("sent"),
)
# Most events of a minute are of messages of that minute: these are read as a range and hashed,
# which took 11 µs a message where looking each one up took 16. Others are looked up by key.
# A bounce that ended a delivery counts as its failure, unless a failure is recorded, too.
# Texts of providers have no bound and may name people: of reasons, only our own codes are stored.
_OF_EVENTS = f"""
SELECT e.organization_id, coalesce(r.test, d.test) AS test,
  coalesce(e.channel, r.channel, d.channel) AS channel,
  CASE WHEN e.type IN ('sent', 'delivered', 'failed', 'bounced')
    THEN coalesce(r.account_id, d.account_id, 0) ELSE 0 END AS account_id,
  CASE e.type WHEN 'bounced' THEN 'failed' ELSE e.type END AS outcome,
  CASE WHEN e.type IN ('failed', 'bounced', 'blocked', 'expired') THEN
    CASE WHEN e.detail->>'reason' = ANY(%(codes)s) THEN e.detail->>'reason'
      WHEN e.type = 'expired' THEN '{StatusReason.EXPIRED}'
      WHEN e.type = 'blocked' THEN '' ELSE '{StatusReason.PROVIDER_ERROR}' END
    ELSE '' END AS reason,
  CASE WHEN e.type = 'sent' THEN {_LATENCY} END AS bucket,
  count(*) AS n
FROM {_OF_MINUTE} e
LEFT JOIN (
  SELECT id, test, channel, account_id, status, scheduled_for, accepted_at FROM {_DELIVERIES}
  WHERE id >= span.recent AND id < span.last OFFSET 0) r ON r.id = e.delivery_id
LEFT JOIN LATERAL (
  SELECT test, channel, account_id, status, scheduled_for, accepted_at FROM {_DELIVERIES}
  WHERE r.id IS NULL AND {sql.by_key("id", "e.delivery_id")} OFFSET 0) d ON true
WHERE (e.type <> 'bounced' OR coalesce(r.status, d.status) = 'FAILED' AND NOT EXISTS (
    SELECT FROM {_EVENTS} f WHERE f.message_id = e.message_id
      AND f.delivery_id = e.delivery_id AND f.type = 'failed'))
GROUP BY 1, 2, 3, 4, 5, 6, 7
"""
# What goes by the simulator, as all that is sent in TEST mode, has no account.
_OF_ATTEMPTS = f"""
SELECT organization_id, false, channel, account_id, 'attempt_' || lower(outcome), '', NULL, count(*)
FROM {_ATTEMPTS}
WHERE id >= span.first AND id < span.last AND account_id IS NOT NULL AND outcome IS NOT NULL
GROUP BY organization_id, channel, account_id, outcome
"""
_COUNT = f"""
INSERT INTO {_MINUTES} ({_KEY}, count, latencies)
SELECT {_KEY}, sum(n), CASE WHEN outcome = '{CountedOutcome.SENT}' THEN ARRAY[{_BUCKETS}] END
FROM unnest(%(minutes)s::timestamptz[], %(recents)s::uuid[], %(firsts)s::uuid[], %(lasts)s::uuid[])
  span(at, recent, first, last), LATERAL ({_OF_EVENTS} UNION ALL {_OF_ATTEMPTS}) found
GROUP BY {_KEY}
"""
_SUMS = ", ".join(f"sum(latencies[{bucket + 1}])" for bucket in range(BUCKETS))
_SUM_UP = f"""
INSERT INTO {_HOURS} ({_KEY}, count, latencies)
SELECT organization_id, date_trunc('hour', at, 'UTC') AS at, test, channel, account_id, outcome,
  reason, sum(count), CASE WHEN outcome = '{CountedOutcome.SENT}' THEN ARRAY[{_SUMS}] END
FROM {_MINUTES} WHERE at >= %s AND at < %s
GROUP BY organization_id, date_trunc('hour', at, 'UTC'), test, channel, account_id, outcome, reason
"""


# A range that the planner takes for small must not be read once for each event.
_BY_HASH = (
    f"{sql.BY_INDEX}, set_config('enable_nestloop', 'off', true), "
    "set_config('work_mem', '64MB', true)"
)


def hour_of(moment: datetime) -> datetime:
    """Return the beginning of an instant's hour."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _minute_of(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(second=0, microsecond=0)


def count_slice(now: datetime) -> bool:
    """Count the next slice; return whether one was found. Two at once do no harm."""
    with transaction.atomic():
        progress = _locked(now)
        if progress is None:
            return False
        final, first = _minute_of(now - FINAL_AFTER), _minute_of(now - GRACE)
        if progress.final_until < final:
            start, end = progress.final_until, min(final, progress.final_until + SLICE)
            _count(start, end)
            _sum_up(hour_of(start), hour_of(end))
            progress.final_until = end
            progress.first_until = max(progress.first_until, end)
        elif progress.first_until < first:
            start, end = progress.first_until, min(first, progress.first_until + SLICE)
            _count(start, end)
            progress.first_until = end
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
    if (found := rows.filter(pk=CountedUntil.ONLY).first()) is not None:
        return found
    start = _first_hour(now)
    new = CountedUntil(first_until=start, final_until=start)
    CountedUntil.objects.bulk_create([new], ignore_conflicts=True)
    return rows.filter(pk=CountedUntil.ONLY).first()


def _first_hour(now: datetime) -> datetime:
    """Return the hour with which the first run begins: that of the first event or delivery.

    Or the one before: a worker whose clock is behind gives its attempts earlier ids.
    """
    since = ids.at_least(now - BACKLOG)
    found = [
        model._default_manager.filter(pk__gte=since).order_by("pk").first()
        for model in (Event, Delivery)
    ]
    return hour_of(min([now, *(ids.moment(row.pk) for row in found if row)]) - FINAL_AFTER)


def _count(start: datetime, end: datetime) -> None:
    """Count the minutes from `start` to `end`, and replace their rows."""
    MinuteCount.objects.filter(at__gte=start, at__lt=end).delete()
    with connection.cursor() as cursor:
        cursor.execute(_BY_HASH)
        cursor.execute(_COUNT, _values(start, end))


def _values(start: datetime, end: datetime) -> dict[str, Any]:
    minutes = [start + MINUTE * i for i in range((end - start) // MINUTE)]
    return {
        "minutes": minutes,
        "recents": [ids.at_least(each - MINUTE) for each in minutes],
        "firsts": [ids.at_least(each) for each in minutes],
        "lasts": [ids.at_least(each + MINUTE) for each in minutes],
        "codes": REASONS,
    }


def _sum_up(start: datetime, end: datetime) -> None:
    """Sum the hours from `start` to `end`, whose minutes will not change any more."""
    if start < end:
        HourCount.objects.filter(at__gte=start, at__lt=end).delete()
        with connection.cursor() as cursor:
            cursor.execute(_SUM_UP, [start, end])


def purge() -> None:
    """Delete minutes and hours that have been kept long enough, in batches."""
    until = monotonic() + PURGE_SECONDS
    now = clock.now()
    for table, retention in ((_MINUTES, MINUTE_RETENTION), (_HOURS, HOUR_RETENTION)):
        while _purge_batch(table, now - retention) == PURGE_BATCH and monotonic() < until:
            pass


def _purge_batch(table: str, before: datetime) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            f"DELETE FROM {table} WHERE ctid = ANY(ARRAY("
            f"SELECT ctid FROM {table} WHERE at < %s LIMIT {PURGE_BATCH}))",
            [before],
        )
        return int(cursor.rowcount)
