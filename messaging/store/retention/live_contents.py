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
# Plan: the primary key of deliveries, a range of one partition or two.
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
    table = f"{partition.name}_live"
    end = partition.end + ids.SKEW  # deliveries get their ids after their message
    first, last = partition.bounds
    with connection.cursor() as cursor:
        cursor.execute(f'CREATE UNLOGGED TABLE IF NOT EXISTS "{table}" (reached uuid, id uuid)')
        cursor.execute(f'SELECT reached FROM "{table}" ORDER BY reached DESC LIMIT 1')
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
        cursor.execute(
            f'SELECT DISTINCT id FROM "{table}" WHERE id IS NOT NULL LIMIT %(limit)s',
            {"limit": LIMIT + 1},
        )
        content_ids = [key for (key,) in cursor.fetchall()]
    if len(content_ids) > LIMIT:
        log.warning("retention.many_live", partition=partition.name)
        clear(partition)
        return None
    return content_ids


def clear(partition: partitions.Partition) -> None:
    """Drop what `find` noted of a partition."""
    with connection.cursor() as cursor:
        cursor.execute(f'DROP TABLE IF EXISTS "{partition.name}_live"')
