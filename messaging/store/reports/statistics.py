"""Statistics: minutes are counted from events and attempts, hours summed, and both read.

Of a slice of many minutes one statement groups and stores all: no index but the primary key serves
it. Buckets of latencies are summed place by place, and many periods are read at once.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Sum

from messaging.domain.statuses import StatusReason
from messaging.models import (
    Attempt,
    CountedOutcome,
    Delivery,
    Event,
    HourCount,
    Message,
    MinuteCount,
)
from messaging.store import event_view
from messaging.store.reports.latencies import BOUNDS, BUCKETS
from rme.core import ids
from rme.core.db import sql

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
Counts = type[MinuteCount] | type[HourCount]

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
_OF_MINUTE = event_view.select(
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
# A delivery by the simulator, as every delivery in TEST mode, has no account.
_OF_ATTEMPTS = f"""
SELECT organization_id, false, channel, account_id, 'attempt_' || lower(outcome), '', NULL, count(*)
FROM {_ATTEMPTS}
WHERE id >= span.first AND id < span.last AND account_id IS NOT NULL AND outcome IS NOT NULL
GROUP BY organization_id, channel, account_id, outcome
"""
# Plan (BY_HASH): ranges of the primary keys of events, attempts and deliveries, hashed; no other
# index.
# Run by: count_minutes, for statistics.minutes
COUNT_MINUTES = f"""
INSERT INTO {_MINUTES} ({_KEY}, count, latencies)
SELECT {_KEY}, sum(n), CASE WHEN outcome = '{CountedOutcome.SENT}' THEN ARRAY[{_BUCKETS}] END
FROM unnest(%(minutes)s::timestamptz[], %(recents)s::uuid[], %(firsts)s::uuid[], %(lasts)s::uuid[])
  span(at, recent, first, last), LATERAL ({_OF_EVENTS} UNION ALL {_OF_ATTEMPTS}) found
GROUP BY {_KEY}
"""
_SUMS = ", ".join(f"sum(latencies[{bucket + 1}])" for bucket in range(BUCKETS))
# Plan: a range of the minutes' times.
# Run by: sum_hours, for statistics.minutes
SUM_HOURS = f"""
INSERT INTO {_HOURS} ({_KEY}, count, latencies)
SELECT organization_id, date_trunc('hour', at, 'UTC') AS at, test, channel, account_id, outcome,
  reason, sum(count), CASE WHEN outcome = '{CountedOutcome.SENT}' THEN ARRAY[{_SUMS}] END
FROM {_MINUTES} WHERE at >= %(start)s AND at < %(end)s
GROUP BY organization_id, date_trunc('hour', at, 'UTC'), test, channel, account_id, outcome, reason
"""
# A range that the planner takes for small must not be read once for each event.
BY_HASH = (
    f"{sql.BY_INDEX}, set_config('enable_nestloop', 'off', true), "
    "set_config('work_mem', '64MB', true)"
)
NOW = "now_"
"""The prefix of outcomes that say which status deliveries have now, not what happened in a time."""
_CHANGED = """('sent', 'delivered', 'fallback', 'failed', 'bounced', 'blocked', 'expired',
  'cancelled')"""
# An id of 65 seconds is its first eight digits.
# Plan: ranges of the primary keys.
# Run by: read_changed, for statistics.minutes
READ_CHANGED = f"""
SELECT left(delivery_id::text, 8) FROM {_EVENTS}
WHERE id >= %(first)s AND id < %(last)s AND type IN {_CHANGED} UNION
SELECT left(delivery_id::text, 8) FROM {_ATTEMPTS} WHERE id >= %(first)s AND id < %(last)s
"""
# A message's deliveries are those that its list shows, so the message's id decides on the hour.
# Plan: a range of the primary key of deliveries for each hour.
# Run by: count_statuses, for statistics.minutes
COUNT_STATUSES = f"""
INSERT INTO {_HOURS} ({_KEY}, count)
SELECT d.organization_id, span.at, d.test, d.channel, 0, '{NOW}' || lower(d.status),
  CASE WHEN d.status IN ('FAILED', 'BLOCKED', 'EXPIRED') AND d.reason = ANY(%(codes)s)
    THEN d.reason ELSE '' END, count(*)
FROM unnest(%(hours)s::timestamptz[], %(lows)s::uuid[], %(firsts)s::uuid[], %(lasts)s::uuid[],
  %(highs)s::uuid[]) span(at, low, first, last, high), LATERAL (
  SELECT organization_id, test, channel, status, reason FROM {_DELIVERIES}
  WHERE id >= span.low AND id < span.high
    AND message_id >= span.first AND message_id < span.last OFFSET 0) d
GROUP BY 1, 2, 3, 4, 5, 6, 7
"""
# Plan: the primary key, a range for each of two periods.
# Run by: read_statuses, for statistics.figures
READ_STATUSES = f"""
SELECT p.number, c.at, c.channel, substr(c.outcome, {len(NOW) + 1}), c.reason, sum(c.count)
FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) WITH ORDINALITY
  p(start, until, number)
JOIN {_HOURS} c ON c.organization_id = %(organization)s AND c.test = %(test)s
  AND c.at >= p.start AND c.at < p.until AND c.outcome LIKE '{NOW}%%' GROUP BY 1, 2, 3, 4, 5
"""
_PERIOD_SUMS = ", ".join(
    f"coalesce(sum(c.latencies[{bucket + 1}]), 0)" for bucket in range(BUCKETS)
)
# Plan: the primary key, a range for each part of the period.
# Run by: read_latencies, for statistics.figures
READ_LATENCIES = f"""
SELECT c.channel, ARRAY[{_PERIOD_SUMS}]
FROM unnest(%({{table}}_starts)s::timestamptz[], %({{table}}_ends)s::timestamptz[]) p(start, until)
JOIN {{table}} c ON c.organization_id = %(organization)s AND c.test = %(test)s
  AND c.at >= p.start AND c.at < p.until
WHERE c.outcome = '{CountedOutcome.SENT}' GROUP BY 1
"""
# Plan: that of READ_LATENCIES, one range.
# Run by: read_attempts, for statistics.figures
READ_ATTEMPTS = """
SELECT date_trunc('hour', c.at, 'UTC'), c.account_id, c.outcome, sum(c.count)
FROM {table} c WHERE c.organization_id = %(organization)s
  AND c.at >= %({table}_start)s AND c.at < %({table}_end)s AND c.outcome LIKE 'attempt%%'
GROUP BY 1, 2, 3
"""
# Plan: the index of times, then rows by their place.
# Run by: delete_old, for statistics.minutes
DELETE_OLD = """
DELETE FROM {table} WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM {table} WHERE at < %(until)s LIMIT %(limit)s))
"""


class PeriodPart(NamedTuple):
    """A part of a period that one table answers."""

    table: Counts
    start: datetime
    end: datetime


class StatusCount(NamedTuple):
    """How many deliveries of messages of an hour have a status now, on a channel."""

    period: int
    """The number of the period, from 1."""
    at: datetime
    channel: str
    status: str
    """In lower case."""
    reason: str
    deliveries: int


class AttemptCount(NamedTuple):
    """How often attempts of an account had an outcome, in an hour."""

    at: datetime
    account_id: int
    outcome: str
    attempts: int


def count_minutes(start: datetime, end: datetime, reasons: Sequence[str]) -> None:
    """Count the minutes from `start` to `end`, and replace their rows. Other reasons than these
    are not counted by their text.
    """
    MinuteCount.objects.filter(at__gte=start, at__lt=end).delete()
    with connection.cursor() as cursor:
        cursor.execute(BY_HASH)
        cursor.execute(COUNT_MINUTES, minute_values(start, end, reasons))


def minute_values(start: datetime, end: datetime, reasons: Sequence[str]) -> dict[str, Any]:
    """Return the values of COUNT_MINUTES."""
    minutes = [start + MINUTE * i for i in range((end - start) // MINUTE)]
    return {
        "minutes": minutes,
        "recents": [ids.at_least(minute - MINUTE) for minute in minutes],
        "firsts": [ids.at_least(minute) for minute in minutes],
        "lasts": [ids.at_least(minute + MINUTE) for minute in minutes],
        "codes": list(reasons),
    }


def sum_hours(start: datetime, end: datetime) -> None:
    """Sum the hours from `start` to `end` from their minutes, and replace their rows."""
    sums = HourCount.objects.filter(at__gte=start, at__lt=end)
    sums.exclude(outcome__startswith=NOW).delete()
    with connection.cursor() as cursor:
        cursor.execute(SUM_HOURS, {"start": start, "end": end})


def delete_old(table: Counts, until: datetime, limit: int) -> int:
    """Delete counts up to a time, up to a limit; return how many."""
    with connection.cursor() as cursor:
        text = DELETE_OLD.format(table=table._meta.db_table)
        cursor.execute(text, {"until": until, "limit": limit})
        return int(cursor.rowcount)


def read_changed(start: datetime, end: datetime) -> list[str]:
    """Return the beginnings of ids, eight digits each, of deliveries that changed in a time."""
    span = {"first": ids.at_least(start), "last": ids.at_least(end)}
    return [beginning for (beginning,) in sql.fetch(READ_CHANGED, span)]


def read_sizes(hours: Sequence[datetime]) -> dict[datetime, int]:
    """Return how many deliveries the messages of each hour had when last counted."""
    counts = HourCount.objects.filter(at__in=hours, outcome__startswith=NOW)
    return dict(counts.values_list("at").annotate(Sum("count")))


def count_statuses(hours: Sequence[datetime], until: datetime, reasons: Sequence[str]) -> None:
    """Count the deliveries of messages of these hours by their status now, and replace the counts.
    Messages since `until` are left out, and so are reasons other than these.
    """
    ends = [min(hour + HOUR, until) for hour in hours]
    HourCount.objects.filter(at__in=hours, outcome__startswith=NOW).delete()
    values: dict[str, Any] = {
        "hours": list(hours),
        # A delivery's id may be a little older or newer than its message's.
        "lows": [ids.at_least(hour - MINUTE) for hour in hours],
        "firsts": [ids.at_least(hour) for hour in hours],
        "lasts": [ids.at_least(end) for end in ends],
        "highs": [ids.at_least(end + MINUTE) for end in ends],
        "codes": list(reasons),
    }
    with connection.cursor() as cursor:
        cursor.execute(COUNT_STATUSES, values)


def read_statuses(
    organization_id: str, periods: Sequence[tuple[datetime, datetime]], *, test: bool
) -> list[StatusCount]:
    """Return the counts of periods of whole hours; one statement."""
    values = {
        "organization": organization_id,
        "test": test,
        "starts": [start for start, _ in periods],
        "ends": [end for _, end in periods],
    }
    return [StatusCount(*row) for row in sql.fetch(READ_STATUSES, values)]


def read_latencies(
    organization_id: str, parts: Sequence[PeriodPart], *, test: bool
) -> list[tuple[str, Sequence[int]]]:
    """Return the counts of the buckets by channel, for each table; one statement."""
    values: dict[str, Any] = {"organization": organization_id, "test": test}
    for table in (_MINUTES, _HOURS):
        of_table = [part for part in parts if part.table._meta.db_table == table]
        values[f"{table}_starts"] = [part.start for part in of_table]
        values[f"{table}_ends"] = [part.end for part in of_table]
    return list(_read(READ_LATENCIES, values))


def read_attempts(
    organization_id: str, start: datetime, border: datetime, end: datetime
) -> list[AttemptCount]:
    """Return the attempts from `start` to `end`, before the border by hours, then by minutes; one
    statement.
    """
    values = {
        "organization": organization_id,
        f"{_HOURS}_start": start,
        f"{_HOURS}_end": border,
        f"{_MINUTES}_start": border,
        f"{_MINUTES}_end": end,
    }
    return [AttemptCount(*row) for row in _read(READ_ATTEMPTS, values)]


def _read(text: str, values: dict[str, Any]) -> list[Any]:
    """Return the rows of a statement on both tables."""
    parts = (text.format(table=table) for table in (_MINUTES, _HOURS))
    return sql.fetch(" UNION ALL ".join(parts), values)
