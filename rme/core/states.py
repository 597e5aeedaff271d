"""The one way a status changes: compare-and-set over a transition table, for many rows at once."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import connection, models

from rme.core.sql import Row, as_json

Transitions = Mapping[Any, Collection[Any]]


def advance(
    model: type[models.Model],
    transitions: Transitions,
    rows: Sequence[Row],
    *,
    claim: bool = False,
) -> set[UUID]:
    """Move rows to new statuses where the table allows it, and give the ids of those that moved.

    Each row has `id`, `status` (the target) and further columns to set, the same in all. A row
    that has `fence` moves only if the stored fence is that one; `claim` counts the fence up, so
    that whoever held the row before cannot write any more. What did not move was not allowed to:
    somebody else was there first, and the caller leaves it be.
    """
    if not rows:
        return set()
    table = model._meta.db_table
    columns = [column for column in rows[0] if column not in ("id", "fence")]
    assignments = [f'"{column}" = r."{column}"' for column in columns]
    assignments.append("updated_at = now()")
    if claim:
        assignments.append("fence = t.fence + 1")
    fenced = " AND t.fence = r.fence" if "fence" in rows[0] else ""
    allowed = [f"{old}>{new}" for old, following in transitions.items() for new in following]
    with connection.cursor() as cursor:
        cursor.execute(
            f'UPDATE "{table}" t SET {", ".join(assignments)} '
            f'FROM json_populate_recordset(NULL::"{table}", %s) r '
            f"WHERE t.id = r.id{fenced} AND t.status || '>' || r.status = ANY(%s) RETURNING t.id",
            [as_json(rows), allowed],
        )
        return {identifier for (identifier,) in cursor.fetchall()}
