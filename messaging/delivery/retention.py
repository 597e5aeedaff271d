"""How long messages and their contents are kept, and how they go.

What is whole months past goes with its partition; what is past and shares a partition with what is
not, in small batches by ranges of the primary key. A message that is still on its way, or moved
within the time that it is to be kept, keeps all that belongs to it: it may have been scheduled a
year ahead.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from time import monotonic
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection, models

from messaging.models import PARTITIONED, Delivery, Message, MessageContent
from messaging.models.statuses import Status
from rme.core import ids
from rme.core.db import partitions

log = structlog.get_logger(__name__)

TURN_SECONDS = 20.0
"""How long one run goes on; the next hour's goes on from there, and the sweep needs its worker."""
BATCH = 1000
ON_ITS_WAY = [Status.ACCEPTED, Status.SCHEDULED, Status.SENDING, Status.UNKNOWN]
_LEAST = UUID(int=0)
_D = Delivery._meta.db_table

_KEPT = "d.status = ANY(%s) OR d.due_at IS NOT NULL OR d.updated_at >= %s"


def apply(*, now: datetime) -> None:
    """Let go what has been kept long enough. Twice, or two at once, comes to the same."""
    contents = now - timedelta(days=settings.CONTENT_RETENTION_DAYS)
    messages = now - timedelta(days=settings.MESSAGE_RETENTION_DAYS)
    month = datetime(messages.year, messages.month, 1, tzinfo=messages.tzinfo)
    until = monotonic() + TURN_SECONDS
    with _alone() as alone:
        if not alone:
            return
        _trim(MessageContent, ids.at_least(contents), contents, until - TURN_SECONDS / 2)
        _drop_months([MessageContent], contents, until, _has_rows)
        _drop_months(PARTITIONED, messages, until, _has_kept)
        for model in PARTITIONED:  # of the months that could not be dropped whole
            _trim(model, ids.at_least(month), messages, until)


@contextmanager
def _alone() -> Iterator[bool]:
    """Hold the lock of this job, and say whether it was free."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended('retention', 2))")
        (locked,) = cursor.fetchone()
        try:
            yield locked
        finally:
            if locked:
                cursor.execute("SELECT pg_advisory_unlock(hashtextextended('retention', 2))")


def _drop_months(
    tables: Sequence[type[models.Model]],
    cutoff: datetime,
    until: float,
    holds: Callable[[partitions.Partition, datetime], bool],
) -> None:
    """Drop the months of tables that ended before a moment, unless the first of them holds one.

    The order of the tables matters: a message is gone before its deliveries, so that no reader
    finds one without.
    """
    names = [model._meta.db_table for model in tables]
    waiting: set[datetime] = set()
    for month in partitions.past(names, before=cutoff):
        if month.start in waiting or monotonic() > until:
            continue
        first = month.table == names[0] and month.attached
        if (first and holds(month, cutoff)) or not partitions.drop(month):
            waiting.add(month.start)
        else:
            log.info("retention.dropped", partition=month.name)


def _has_rows(month: partitions.Partition, _: datetime) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT EXISTS (SELECT FROM "{month.name}")')
        return bool(cursor.fetchone()[0])


def _has_kept(month: partitions.Partition, cutoff: datetime) -> bool:
    """Say whether a message of a month must be kept, by one walk through its deliveries.

    These are made together with it, so of its last moment some may be in the next month.
    """
    start, end = ids.at_least(month.start), ids.at_least(month.end)
    later = ids.at_least(month.end + timedelta(days=1))
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT EXISTS (SELECT FROM {_D} d WHERE d.id >= %s AND d.id < %s "
            f"AND d.message_id >= %s AND d.message_id < %s AND ({_KEPT}))",
            [start, later, start, end, ON_ITS_WAY, cutoff],
        )
        return bool(cursor.fetchone()[0])


def _trim(model: type[models.Model], end: UUID, cutoff: datetime, until: float) -> None:
    """Delete a table's rows below an id, but for messages that are kept, batch by batch.

    The youngest first, which the last hour brought: what is older and still there is mostly kept.
    """
    table = model._meta.db_table
    key = "id" if model in (Message, MessageContent) else "message_id"
    gone, start = 0, end
    with connection.cursor() as cursor:
        while start > _LEAST and monotonic() < until:
            cursor.execute(
                f"SELECT id FROM {table} WHERE id < %s ORDER BY id DESC OFFSET %s LIMIT 1",
                [end, BATCH - 1],
            )
            row = cursor.fetchone()
            start = row[0] if row else _LEAST
            cursor.execute(
                f"DELETE FROM {table} t WHERE t.id >= %s AND t.id < %s AND NOT EXISTS "
                f"(SELECT FROM {_D} d WHERE d.message_id = t.{key} AND ({_KEPT}))",
                [start, end, ON_ITS_WAY, cutoff],
            )
            gone += cursor.rowcount
            end = start
    if gone:
        log.info("retention.deleted", table=table, rows=gone)
