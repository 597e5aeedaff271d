"""Dropping contents whose time has passed: `python -m bench retention`.

A day of contents in a partition of its own, with the deliveries that say which are still needed;
beside it what deleting rows in batches manages. BENCH_CONTENTS makes the day smaller.
"""

import os
import time
from datetime import datetime, timedelta

from bench.scene import Scene

COUNT = int(os.environ.get("BENCH_CONTENTS", "1000000"))
LIVE = 100
"""So many of the day are still scheduled."""
DELETED = COUNT // 10
"""So many are deleted in batches, for comparison."""

_ID = """(lpad(to_hex({start} + i::bigint * {day} / {count}), 12, '0') || '7000'
  || {kind} || lpad(to_hex(i), 15, '0'))::uuid"""
_CONTENTS = """
INSERT INTO messaging_messagecontent (id, organization_id, body, size)
SELECT {id}, 'bench', jsonb_build_object('variables', jsonb_build_object('note', md5(i::text)),
  'sender', jsonb_build_object('domain', 'bench.example', 'local_part', 'a', 'name', '')), 144
FROM generate_series(1, {count}) i
"""
_DELIVERIES = """
INSERT INTO messaging_delivery (id, organization_id, message_id, contact_id, position, category,
  priority, channels, channel, status, due_at, expires_at, fence, tries, test, updated_at)
SELECT {id}, 'bench', {message}, 'c' || mod(i, 1000), 0, 'TRANSACTIONAL', 1, '{{}}', 'EMAIL',
  CASE WHEN mod(i, {each}) = 0 THEN 'SCHEDULED' ELSE 'SENT' END,
  CASE WHEN mod(i, {each}) = 0 THEN now() + interval '1 year' END, now(), 1, 0, false,
  to_timestamp({start} / 1000)
FROM generate_series(1, {count}) i
"""


def retention(_: Scene) -> None:
    """Fill two days that have passed; drop one whole, and delete from the other in batches."""
    from bench.report import say
    from messaging.models import MessageContent
    from messaging.store.retention import job
    from rme.core import ids
    from rme.core.db import clock, partitions
    from rme.core.db.periods import Period

    now = Period.DAY.start_of(clock.now())
    table = MessageContent._meta.db_table
    _clean(now)
    try:
        _fill(now - timedelta(days=41), DELETED)
        taken = time.perf_counter()
        end, cutoff = ids.at_least(now - timedelta(days=40)), now - timedelta(days=30)
        job._trim(MessageContent, end, cutoff, time.monotonic() + 600)
        by_rows = DELETED / (time.perf_counter() - taken)
        _fill(now - timedelta(days=40), COUNT)
        taken, runs = time.perf_counter(), 0
        while _contents() > LIVE + _left(DELETED):
            job.apply_to_contents(now=now)
            runs += 1
        whole = COUNT / (time.perf_counter() - taken)
        assert partitions.past([table], before=now - timedelta(days=30)) == []
    finally:
        _clean(now)
    daily = 12 * 24 * job.CONTENT_SECONDS / 1e6
    say("retention: deleted in batches", by_rows, "contents/s", f"{by_rows * daily:,.0f} M a day")
    say("retention: a day dropped whole", whole, "contents/s", f"{whole * daily:,.0f} M a day")
    print(f"{COUNT:,} contents, {LIVE} carried over, in {runs} runs; the aim is 500 M a day")


def _left(count: int) -> int:
    """Return how many of a day are still scheduled."""
    return count // (COUNT // LIVE)


def _fill(day: datetime, count: int) -> None:
    from django.db import connection

    from messaging.models import Delivery, MessageContent
    from rme.core.db import partitions
    from rme.core.db.periods import Period

    partitions.create_ahead([MessageContent._meta.db_table], now=day, period=Period.DAY, ahead=0)
    partitions.create_ahead([Delivery._meta.db_table], now=day, ahead=0)
    start = int(day.timestamp() * 1000)
    rows = {"start": start, "day": 86_400_000 - 1, "count": count}
    message, own = (_ID.format(kind=f"'{kind}'", **rows) for kind in "89")
    contents = _CONTENTS.format(id=message, count=count)
    each = COUNT // LIVE
    deliveries = _DELIVERIES.format(id=own, message=message, count=count, each=each, start=start)
    with connection.cursor() as cursor:
        cursor.execute(contents)
        cursor.execute(deliveries)
        cursor.execute("ANALYZE messaging_messagecontent, messaging_delivery")


def _contents() -> int:
    from messaging.models import MessageContent

    return MessageContent.objects.count()


def _clean(now: datetime) -> None:
    """Drop what this run or an interrupted one has made."""
    from django.db import connection

    from messaging.models import Delivery, MessageContent
    from rme.core.db import partitions

    tables = [MessageContent._meta.db_table, Delivery._meta.db_table]
    for each in partitions.past(tables, before=now - timedelta(days=30)):
        assert partitions.drop(each)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {tables[0]}_kept")
        cursor.execute(f"TRUNCATE {', '.join(tables)}")
