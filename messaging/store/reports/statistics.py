"""Statistics: minutes are counted from events and attempts, hours summed, and both read.

Of a slice of many minutes one statement groups and stores all: no index but the primary key serves
it. Buckets of latencies are summed place by place, and many periods are read at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection

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

MINUTE = timedelta(minutes=1)
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
# Plan: the primary key, a range for each period.
# Run by: read_periods, for statistics.figures
READ_PERIODS = """
SELECT p.period, c.channel, c.outcome, c.reason, sum(c.count),
  CASE WHEN c.outcome = 'sent' THEN ARRAY[{sums}] END
FROM unnest(%({table}_periods)s::int[], %({table}_starts)s::timestamptz[],
  %({table}_ends)s::timestamptz[]) p(period, start, until)
JOIN {table} c ON c.organization_id = %(organization)s AND c.test = %(test)s
  AND c.at >= p.start AND c.at < p.until
WHERE c.outcome NOT LIKE 'attempt%%' GROUP BY 1, 2, 3, 4
"""
_PERIOD_SUMS = ", ".join(
    f"coalesce(sum(c.latencies[{bucket + 1}]), 0)" for bucket in range(BUCKETS)
)
# Plan: that of READ_PERIODS, one range.
# Run by: read_hours, for statistics.figures
READ_HOURS = """
SELECT date_trunc('hour', c.at, 'UTC'), c.channel, c.account_id, c.outcome, sum(c.count)
FROM {table} c WHERE c.organization_id = %(organization)s AND c.test = %(test)s
  AND c.at >= %({table}_start)s AND c.at < %({table}_end)s
GROUP BY 1, 2, 3, 4
"""
# Plan: the index of times, then rows by their place.
# Run by: delete_old, for statistics.minutes
DELETE_OLD = """
DELETE FROM {table} WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM {table} WHERE at < %(until)s LIMIT %(limit)s))
"""


class PeriodPart(NamedTuple):
    """A part of a period, by its number, that one table answers."""

    period: int
    table: Counts
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class PeriodCount:
    """How often an outcome had a reason on a channel, in a piece of a period."""

    period: int
    channel: str
    outcome: str
    reason: str
    count: int
    latencies: Sequence[int] | None
    """Of `sent`: the counts of the buckets."""


@dataclass(frozen=True, slots=True)
class HourSum:
    """How often an outcome happened in an hour, on a channel and by an account."""

    at: datetime
    channel: str
    account_id: int
    outcome: str
    count: int


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
    HourCount.objects.filter(at__gte=start, at__lt=end).delete()
    with connection.cursor() as cursor:
        cursor.execute(SUM_HOURS, {"start": start, "end": end})


def delete_old(table: Counts, until: datetime, limit: int) -> int:
    """Delete counts up to a time, up to a limit; return how many."""
    with connection.cursor() as cursor:
        text = DELETE_OLD.format(table=table._meta.db_table)
        cursor.execute(text, {"until": until, "limit": limit})
        return int(cursor.rowcount)


def read_periods(
    organization_id: str, pieces: Sequence[PeriodPart], *, test: bool
) -> list[PeriodCount]:
    """Return the counts of periods; one statement. For the figures."""
    values: dict[str, Any] = {"organization": organization_id, "test": test}
    for table in (_MINUTES, _HOURS):
        columns = [piece for piece in pieces if piece.table._meta.db_table == table]
        values[f"{table}_periods"] = [piece.period for piece in columns]
        values[f"{table}_starts"] = [piece.start for piece in columns]
        values[f"{table}_ends"] = [piece.end for piece in columns]
    return [PeriodCount(*row) for row in _read(READ_PERIODS, values)]


def read_hours(
    organization_id: str, start: datetime, border: datetime, end: datetime, *, test: bool
) -> list[HourSum]:
    """Return sums from `start` to `end`, before the border by hours, then by minutes; one
    statement. For the figures.
    """
    values = {
        "organization": organization_id,
        "test": test,
        f"{_HOURS}_start": start,
        f"{_HOURS}_end": border,
        f"{_MINUTES}_start": border,
        f"{_MINUTES}_end": end,
    }
    return [HourSum(*row) for row in _read(READ_HOURS, values)]


def _read(text: str, values: dict[str, Any]) -> list[Any]:
    """Return the rows of a statement on both tables."""
    parts = (text.format(table=table, sums=_PERIOD_SUMS) for table in (_MINUTES, _HOURS))
    return sql.fetch(" UNION ALL ".join(parts), values)
