"""Find the messages of a partition that are still needed, with their content or without, by one
pass over deliveries.

The pass goes slice by slice and notes in a table of its own how far it has come (`…_live`), so that
it may be interrupted and takes no snapshot for long. What was found stays correct: a delivery that
has ended does not begin again.
"""

from collections.abc import Mapping
from datetime import timedelta
from time import monotonic
from typing import Any
from uuid import UUID

import structlog
from django.db import connection, transaction

from messaging.models import Delivery
from rme.core import ids
from rme.core.db import partitions, sql

log = structlog.get_logger(__name__)

LIMIT = 20_000
"""The most rows of a partition that are carried over: they are copied under a lock."""
SLICE_SECONDS = 0.5
"""About how long the statement of a slice takes."""
FIRST_SLICE = timedelta(minutes=15)
# Plan: reads no table.
# Run by: find, for store.retention.job
CREATE_NOTES = 'CREATE UNLOGGED TABLE IF NOT EXISTS "{table}" (reached uuid, id uuid)'
# Plan: reads the whole table, which has what `find` has noted of a partition.
# Run by: find, for store.retention.job
FIND_REACHED = 'SELECT reached FROM "{table}" ORDER BY reached DESC LIMIT 1'
# Plan: that of FIND_REACHED.
# Run by: find, for store.retention.job
READ_NOTES = 'SELECT DISTINCT id FROM "{table}" WHERE id IS NOT NULL LIMIT %(limit)s'
# Plan: reads no table.
# Run by: clear, for find and store.retention.job
DROP_NOTES = 'DROP TABLE IF EXISTS "{table}"'
# Plan (BY_INDEX): the primary key of deliveries, a range of one partition or two.
# Run by: find, for store.retention.job
NOTE_LIVE = (
    'INSERT INTO "{table}" SELECT %(end)s, d.message_id '
    f"FROM {Delivery._meta.db_table} d "
    "WHERE d.id >= %(start)s AND d.id < %(end)s "
    "AND d.message_id >= %(first)s AND d.message_id < %(last)s "
    "AND ({condition}) UNION SELECT %(end)s, NULL"
)


def find(
    partition: partitions.Partition,
    condition: str,
    values: Mapping[str, Any],
    until: float,
) -> list[UUID] | None:
    """Return the ids of the messages that have a delivery which meets a condition on `d`.

    None if the time is over (monotonic), and the next call continues; or if they are too many.
    """
    table = _notes(partition)
    end = partition.end + ids.SKEW  # deliveries get their ids after their message
    first, last = partition.bounds
    with connection.cursor() as cursor:
        cursor.execute(CREATE_NOTES.format(table=table))
        cursor.execute(FIND_REACHED.format(table=table))
        row = cursor.fetchone()
        start, length = ids.moment(row[0]) if row else partition.start, FIRST_SLICE
        while start < end:
            if monotonic() > until:
                return None
            following, began = min(start + length, end), monotonic()
            with transaction.atomic():
                cursor.execute(sql.BY_INDEX)
                cursor.execute(
                    NOTE_LIVE.format(table=table, condition=condition),
                    {
                        "start": ids.at_least(start),
                        "end": ids.at_least(following),
                        "first": first,
                        "last": last,
                        **values,
                    },
                )
            start = following
            length *= 2 if monotonic() - began < SLICE_SECONDS else 0.5
        cursor.execute(READ_NOTES.format(table=table), {"limit": LIMIT + 1})
        content_ids = [key for (key,) in cursor.fetchall()]
    if len(content_ids) > LIMIT:
        log.warning("retention.many_live", partition=partition.name)
        clear(partition)
        return None
    return content_ids


def clear(partition: partitions.Partition) -> None:
    """Drop what `find` noted of a partition."""
    with connection.cursor() as cursor:
        cursor.execute(DROP_NOTES.format(table=_notes(partition)))


def _notes(partition: partitions.Partition) -> str:
    """Return the name of the table of what `find` notes of a partition."""
    return f"{partition.name}_live"
