"""Retention: delete messages and their contents that have been kept long enough.

A partition that has passed entirely is dropped. In one that has passed in part, rows are deleted in
small batches by ranges of the primary key. A message that is not finished, or that changed
within the retention time, keeps all its rows: it may have been scheduled a year ahead. They are
carried over when their partitions are dropped; `live_contents` finds such messages.

SQL, because a partition is a table of its own, and each batch is one statement by a correlated
test.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from time import monotonic
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection, models, transaction

from messaging.domain.statuses import Status
from messaging.models import PARTITIONED, Attempt, Delivery, Message, MessageContent
from messaging.store.encodings import message_of_attempt
from messaging.store.lookups import is_of_message
from messaging.store.retention import live_contents
from rme.core import ids
from rme.core.db import locks, partitions, sql
from rme.core.db.periods import Period

log = structlog.get_logger(__name__)

LOCK = "retention"
"""The name of the lock that a run holds."""
TURN_SECONDS = 20.0
"""How long one run takes at most: other tasks need the worker, and the next run continues."""
CONTENT_SECONDS = 10.0
"""The same of a run for contents alone, of which there are twelve an hour."""
BATCH = 1000
UNFINISHED = [Status.ACCEPTED, Status.SCHEDULED, Status.SENDING, Status.UNKNOWN]
_LEAST = UUID(int=0)
_D, _M, _A = (model._meta.db_table for model in (Delivery, Message, Attempt))

_RETAINED = "d.status = ANY(%(unfinished)s) OR d.due_at IS NOT NULL OR d.updated_at >= %(cutoff)s"

# Plan (BY_INDEX): the index of the key that joins it to its parent; a partition is a table of its
# own.
# Run by: _rows_to_retain, for _drop_partitions
FIND_ROWS = 'SELECT t.id FROM "{part}" t WHERE {belongs} LIMIT %(limit)s'
# Plan: the primary key, backwards.
# Run by: _trim, for apply and _drop_contents
FIND_START = "SELECT id FROM {table} WHERE id < %(end)s ORDER BY id DESC OFFSET %(skip)s LIMIT 1"
# Plan: a range of the primary key; the deliveries of each message by their keys.
# Run by: _trim, for apply and _drop_contents
FIND_EXPIRED = (
    "SELECT t.id FROM {table} t WHERE t.id >= %(start)s AND t.id < %(end)s AND NOT EXISTS "
    "(SELECT FROM " + _D + " d WHERE {of_message} AND (" + _RETAINED + "))"
)
# Plan: the primary key, once for each.
# Run by: _trim, for apply and _drop_contents
DELETE = "DELETE FROM {table} WHERE id = ANY(%(expired)s)"


def _retained(cutoff: datetime) -> dict[str, Any]:
    """Return the values of the condition of what is kept."""
    return {"unfinished": UNFINISHED, "cutoff": cutoff}


def apply(*, now: datetime) -> None:
    """Delete what has been kept long enough. Two runs at once do no harm."""
    messages = now - timedelta(days=settings.MESSAGE_RETENTION_DAYS)
    first = settings.PARTITION_PERIOD.start_of(messages)
    until = monotonic() + TURN_SECONDS
    with locks.alone(LOCK) as has_lock:
        if not has_lock:
            return
        _drop_contents(now, until - TURN_SECONDS / 2)
        _drop_partitions(messages, until)
        for model in PARTITIONED:  # of the partitions that could not be dropped whole
            _trim(model, ids.at_least(first), messages, until)


def apply_to_contents(*, now: datetime) -> None:
    """Delete the contents that have been kept long enough: they are to go soon after their time."""
    with locks.alone(LOCK) as has_lock:
        if has_lock:
            _drop_contents(now, monotonic() + CONTENT_SECONDS)


def _drop_contents(now: datetime, until: float) -> None:
    """Drop the partitions of contents that have passed, oldest first; carry over what is still
    needed.

    The rest is deleted in batches: what was carried over and has ended, and the older rows of a
    partition that is longer than a day. Of a day, all rows go together, a day later at most.
    """
    days = min(settings.CONTENT_RETENTION_DAYS, settings.MESSAGE_RETENTION_DAYS)
    table, cutoff = MessageContent._meta.db_table, now - timedelta(days=days)
    blocked = False
    for part in partitions.past([table], before=cutoff):
        if not part.attached:
            partitions.drop(part)
            continue
        keys = live_contents.find(part, _RETAINED, _retained(cutoff), until)
        if keys is None or not partitions.drop_except(part, keys):
            blocked = True
            break
        live_contents.clear(part)
        log.info("retention.dropped", partition=part.name, carried_over=len(keys))
    by_day = partitions.length_at(table, cutoff) is Period.DAY
    by_partition = by_day and not blocked
    end = partitions.carried_over_until(table) if by_partition else ids.at_least(cutoff)
    _trim(MessageContent, end, cutoff, until)


def _drop_partitions(cutoff: datetime, until: float) -> None:
    """Drop the partitions that ended before the cutoff, oldest first, and carry over what is still
    needed. The next run continues with one that has to wait.

    Messages are first, so that no reader finds a message without its deliveries, and so that those
    that are left say which rows of the other tables are still needed.
    """
    messages, *other_tables = (m._meta.db_table for m in PARTITIONED if m is not MessageContent)
    for part in partitions.past([messages], before=cutoff):
        keys = (
            live_contents.find(part, _RETAINED, _retained(cutoff), until) if part.attached else []
        )
        if not _drop(part, keys, until):
            break
        live_contents.clear(part)
    oldest = partitions.oldest(messages)
    for part in partitions.past(other_tables, before=cutoff):
        if oldest is not None and part.end > oldest:  # it is of other periods, or had to wait
            break
        if not _drop(part, _rows_to_retain(part), until):
            break


def _drop(part: partitions.Partition, keys: Sequence[UUID] | None, until: float) -> bool:
    """Drop a partition except some rows; return False if it has to wait."""
    if keys is None or monotonic() > until:
        return False
    dropped = partitions.drop_except(part, keys) if keys else partitions.drop(part)
    if dropped:
        log.info("retention.dropped", partition=part.name, carried_over=len(keys))
    return dropped


def _rows_to_retain(part: partitions.Partition) -> list[UUID] | None:
    """Return the rows of a partition that belong to messages of its time, or before, that are kept;
    None if they are too many.

    The messages that have passed are gone by then, as their partitions were dropped before. Rows
    are found by an index, so that this takes as long as the kept messages are many.
    """
    if not part.attached:
        return []
    parent, belongs = _M, "t.message_id = {}"
    if part.table == _D:
        belongs = is_of_message("t", "{0}")
    elif part.table == _A:  # where the message's id has no index
        parent, belongs = _D, "t.delivery_id = {}"
    remaining = f"ANY(ARRAY(SELECT p.id FROM {parent} p WHERE p.id < %(end)s))"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.BY_INDEX)
        cursor.execute(
            FIND_ROWS.format(part=part.name, belongs=belongs.format(remaining)),
            {"end": part.bounds[1], "limit": live_contents.LIMIT + 1},
        )
        row_ids = [key for (key,) in cursor.fetchall()]
    if len(row_ids) > live_contents.LIMIT:
        log.warning("retention.many_live", partition=part.name)
        return None
    return row_ids


def _trim(model: type[models.Model], end: UUID, cutoff: datetime, until: float) -> None:
    """Delete a table's rows below an id, except those of messages that are kept, batch by batch.

    The youngest come first, since they passed the cutoff in the last hour; what is older and still
    there is mostly kept.
    """
    table = model._meta.db_table
    key = "t.id" if model in (Message, MessageContent) else "t.message_id"
    if model is Attempt:
        key = message_of_attempt("t")
    deleted, start = 0, end
    with connection.cursor() as cursor:
        while start > _LEAST and monotonic() < until:
            cursor.execute(FIND_START.format(table=table), {"end": end, "skip": BATCH - 1})
            row = cursor.fetchone()
            start = row[0] if row else _LEAST
            # Two statements: docs/architecture.md, "Locks and pruning".
            cursor.execute(
                FIND_EXPIRED.format(table=table, of_message=is_of_message("d", key)),
                {"start": start, "end": end, **_retained(cutoff)},
            )
            if expired_ids := [row_id for (row_id,) in cursor.fetchall()]:
                cursor.execute(DELETE.format(table=table), {"expired": expired_ids})
                deleted += cursor.rowcount
            end = start
    if deleted:
        log.info("retention.deleted", table=table, rows=deleted)
