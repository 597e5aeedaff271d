"""Days of messages, the last of them yesterday, in partitions by day.

A day is scaled down in rows and not in partitions. Its rows have the ids and times of that day, and
the periodic jobs run as if it had just ended.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

from django.conf import settings
from django.db import connection
from django.test import override_settings

from messaging.domain.statuses import Status
from messaging.models import (
    PARTITIONED,
    CountedUntil,
    Delivery,
    HourCount,
    MessageContent,
    MinuteCount,
    partition_periods,
)
from messaging.statistics import minutes
from messaging.store import retention
from rme.core import ids
from rme.core.db import clock, partitions
from rme.core.db.periods import Period

ORGANIZATION = "acme"
LIVE = 10
"""So many messages of a day are scheduled, until `end_live` sends them."""
HELD = 1
"""So many of a day are in manual review, likewise."""
WAITING = 200
"""So many of the newest day are ready to be sent."""
UNCONFIRMED = 60
"""So many of the newest day are sent and not yet delivered."""
FAR = datetime(2100, 1, 1, tzinfo=UTC)
TRIES = 50
"""How often partitions are created until all are there: on a busy machine some need several."""
SLICE = timedelta(hours=6)
"""The minutes that are counted at once: a day has few rows, and as many minutes as any."""

_TABLES = [model._meta.db_table for model in PARTITIONED]
_CONTENTS = MessageContent._meta.db_table
_KINDS = ("message", "delivery", "attempt", "accepted", "sent", "delivered")
_ID = """(lpad(to_hex({start} + {after} + i::bigint * 86400000 / {count}), 12, '0') || '7{kind}'
  || substr(md5({start} || 'x' || i), 1, 2) || '8' || substr(md5({start} || 'y' || i), 1, 15)
  )::uuid"""
_AFTER_MS = (0, 0, 2000, 0, 3000, 5000)
"""When each of the rows is written: of the last messages of a day, on the next one."""
_FILL = """
WITH made AS (
  SELECT i, {message} AS message_id, {delivery} AS id,
    %(day)s::timestamptz + i * interval '1 day' / {count} AS at, 'c' || mod(i, 1000) AS contact,
    CASE WHEN i < %(live)s THEN 'SCHEDULED' WHEN i < %(held)s THEN 'UNKNOWN'
      WHEN i < %(waiting)s THEN 'ACCEPTED' WHEN i < %(unconfirmed)s THEN 'SENT'
      ELSE 'DELIVERED' END AS status
  FROM generate_series(0, {count} - 1) i
), messages AS (
  INSERT INTO messaging_message (id, organization_id, category, channels, strategy, template,
    language, test, created_at)
  SELECT message_id, %(organization)s, 'NEWS', '{{EMAIL}}', 'FIRST_REACHABLE', 'note', 'en_US',
    false, at FROM made
), contents AS (
  INSERT INTO messaging_messagecontent (id, organization_id, body, size)
  SELECT message_id, %(organization)s, jsonb_build_object('variables',
    jsonb_build_object('note', i)), 40 FROM made
), attempts AS (
  INSERT INTO messaging_attempt (id, organization_id, message_id, delivery_id, fence, channel,
    provider, account_id, outcome, provider_id, started_at, latency_ms)
  SELECT {attempt}, %(organization)s, message_id, id, 1, 'EMAIL', 'smtp', 7, 'Accepted', 'p' || i,
    at, 12 FROM made WHERE status NOT IN ('ACCEPTED', 'SCHEDULED')
), events AS (
  INSERT INTO messaging_event (id, organization_id, message_id, delivery_id, type, at, channel,
    provider)
  SELECT event.id, %(organization)s, message_id, made.id, type, at, 'EMAIL', 'smtp'
  FROM made, LATERAL (VALUES ({accepted}, 'accepted', 0), ({sent}, 'sent', 1),
    ({delivered}, 'delivered', 2)) event(id, type, place)
  WHERE place <= CASE status WHEN 'DELIVERED' THEN 2 WHEN 'SENT' THEN 1 ELSE 0 END
)
INSERT INTO messaging_delivery (id, organization_id, message_id, contact_id, position, category,
  priority, channels, channel, address, provider, account_id, status, due_at, expires_at, fence,
  tries, test, updated_at)
SELECT id, %(organization)s, message_id, contact, 0, 'NEWS', 1, '{{}}', 'EMAIL',
  contact || '@x.example', 'smtp', 7, status,
  CASE status WHEN 'SCHEDULED' THEN %(far)s WHEN 'ACCEPTED' THEN at END, %(far)s, 1, 0, false, at
FROM made
"""


def first_of(days: int) -> datetime:
    """Return the start of the first of so many days, the last of which was yesterday."""
    return Period.DAY.start_of(clock.now()) - timedelta(days=days)


@contextmanager
def partitions_by_day(*, messages: int, contents: int) -> Iterator[None]:
    """Have partitions by day and nothing in them, and rows kept for so many days; afterwards the
    tables are empty and have the partitions of the settings.
    """
    own: dict[str, Any] = {
        "PARTITION_PERIOD": Period.DAY,
        "CONTENT_PARTITION_PERIOD": Period.DAY,
        "MESSAGE_RETENTION_DAYS": messages,
        "CONTENT_RETENTION_DAYS": contents,
    }
    _drop_all()
    try:
        with override_settings(**own), patch.object(minutes, "SLICE", SLICE):
            yield
    finally:
        _drop_all()
        create_ahead(clock.now())


def _drop_all() -> None:
    for model in (CountedUntil, MinuteCount, HourCount):
        model.objects.all().delete()
    query(f"TRUNCATE {', '.join(_TABLES)}")
    for name in leaves():
        if not name.endswith("_default"):
            query(f'DROP TABLE "{name}"')


def create_ahead(now: datetime) -> None:
    """Create the partitions of a moment and of the time ahead, all of them."""
    for table, period in partition_periods().items():
        for _ in range(TRIES):
            partitions.create_ahead([table], now=now, period=period)
            if not partitions.missing([table], now=now, period=period):
                break
        else:
            raise TimeoutError(f"the partitions of {table} cannot be created")


def fill(day: datetime, count: int) -> None:
    """Store a day of messages, of which some wait, and end what waited the day before."""
    query(
        "UPDATE messaging_delivery SET status = 'DELIVERED', due_at = NULL "
        "WHERE status IN ('ACCEPTED', 'SENT')"
    )
    start = int(day.timestamp() * 1000)
    own = {
        kind: _ID.format(start=start, after=after, count=count, kind=place)
        for place, (kind, after) in enumerate(zip(_KINDS, _AFTER_MS, strict=True))
    }
    held = LIVE + HELD
    values = {
        "day": day,
        "far": FAR,
        "organization": ORGANIZATION,
        "live": LIVE,
        "held": held,
        "waiting": held + WAITING,
        "unconfirmed": held + WAITING + UNCONFIRMED,
    }
    query(_FILL.format(**own, count=count), values)


def end_live(day: datetime, now: datetime) -> int:
    """Send what was scheduled, or held, on a day; return how many deliveries those were."""
    kept = [Status.SCHEDULED, Status.UNKNOWN]
    own = Delivery.objects.filter(
        status__in=kept,
        pk__gte=ids.at_least(day),
        pk__lt=ids.at_least(day + timedelta(days=1)),
    )
    return own.update(status=Status.SENT, due_at=None, updated_at=now)


def run_jobs(now: datetime) -> None:
    """Run what the periodic tasks run, until none of them has anything left to do at that time."""
    retention.apply_to_contents(now=now)
    create_ahead(now)
    retention.apply(now=now)
    while minutes.count_slice(now):
        pass


def counted(day: datetime) -> int:
    """Return how many messages the minutes of a day count as accepted."""
    rows = MinuteCount.objects.filter(
        outcome="accepted", at__gte=day, at__lt=day + timedelta(days=1)
    )
    return sum(rows.values_list("count", flat=True))


def leaves() -> list[str]:
    """Return the names of all partitions of the five tables."""
    rows = query(
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = ANY(%s::regclass[]) "
        "ORDER BY 1",
        [_TABLES],
    )
    return [name for (name,) in rows]


def in_default() -> int:
    """Return how many rows the default partitions have."""
    counts = [query(f"SELECT count(*) FROM {table}_default")[0][0] for table in _TABLES]
    return sum(counts)


def past_retention(now: datetime) -> dict[str, int]:
    """Return how many rows of each table should have been deleted by a moment.

    Partitions go as a whole, so each row may stay for a day longer. The rows of deliveries that are
    still needed, or were lately, are none of these.
    """
    needed = (
        "SELECT message_id FROM messaging_delivery WHERE status = ANY(%s) OR due_at IS NOT NULL "
        "OR updated_at >= %s"
    )
    found = {}
    for table in _TABLES:
        contents = table == _CONTENTS
        days = settings.CONTENT_RETENTION_DAYS if contents else settings.MESSAGE_RETENTION_DAYS
        cutoff = now - timedelta(days=days)
        key = "id" if table in (_CONTENTS, _TABLES[0]) else "message_id"
        end = ids.at_least(Period.DAY.start_of(cutoff))
        unfinished = [Status.ACCEPTED, Status.SCHEDULED, Status.SENDING, Status.UNKNOWN]
        [(count,)] = query(
            f"SELECT count(*) FROM {table} WHERE id < %s AND {key} NOT IN ({needed})",
            [end, unfinished, cutoff],
        )
        found[table] = count
    return found


def incomplete() -> int:
    """Return how many live messages lack their delivery or their content."""
    [(count,)] = query(
        "SELECT count(*) FROM messaging_delivery d WHERE status IN ('SCHEDULED', 'UNKNOWN') AND "
        "NOT (EXISTS (SELECT FROM messaging_message m WHERE m.id = d.message_id) AND "
        "EXISTS (SELECT FROM messaging_messagecontent c WHERE c.id = d.message_id) AND "
        "EXISTS (SELECT FROM messaging_event e WHERE e.message_id = d.message_id))"
    )
    return int(count)


def query(statement: str, values: Any = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []
