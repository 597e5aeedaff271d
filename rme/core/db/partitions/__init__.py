"""Tables partitioned by time: their partitions, and migrations that create and change them.

`tables` creates, lists and drops partitions; `repartition` moves rows that came before theirs.
`indexes` and `options` are migration operations.
"""

from rme.core.db.partitions.tables import (
    LOCK,
    CreatePartitionedModel,
    Partition,
    carried_over_until,
    create_ahead,
    drop,
    drop_except,
    length_at,
    missing,
    oldest,
    past,
)

__all__ = [
    "LOCK",
    "CreatePartitionedModel",
    "Partition",
    "carried_over_until",
    "create_ahead",
    "drop",
    "drop_except",
    "length_at",
    "missing",
    "oldest",
    "past",
]
