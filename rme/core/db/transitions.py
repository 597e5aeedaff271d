"""The one way a status changes: compare-and-set over a transition table, for many rows at once."""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import models

from rme.core.db import sql

Transitions = Mapping[Any, Collection[Any]]


def seizing(model: type[models.Model], transitions: Transitions, target: str, due_at: str) -> str:
    """Give the UPDATE that claims the rows of a CTE named `picked`: for a statement that picks
    rows, claims them and reads what belongs to them, all at once.

    `due_at` is the SQL of the lease's end. The fence is counted up, as `advance` does for a claim.
    The status is compared as an expression, so that no partial index on it seems to be a way in.
    """
    table = model._meta.db_table
    sources = ", ".join(f"'{old}'" for old, following in transitions.items() if target in following)
    return (
        f"UPDATE \"{table}\" t SET status = '{target}', due_at = {due_at}, fence = t.fence + 1, "
        f"updated_at = now() FROM picked WHERE {sql.by_key('t.id', 'picked.id')} "
        f"AND t.status || '' IN ({sources}) "
        "RETURNING t.*"
    )


def advance(
    model: type[models.Model],
    transitions: Transitions,
    rows: Sequence[sql.Row],
) -> set[UUID]:
    """Move rows to new statuses where the table allows it, and give the ids of those that moved."""
    moved = sql.execute({"moved": advancing(model, transitions, rows)})
    return {identifier for (identifier,) in moved}


def advancing(
    model: type[models.Model],
    transitions: Transitions,
    rows: Sequence[sql.Row],
) -> sql.Part | None:
    """Give the UPDATE that moves rows where the table allows it, and returns their ids.

    Each row has `id`, `status` (the target) and further columns to set, the same in all. A row
    that has `fence` moves only if the stored fence is that one: whoever held the row before a later
    claim cannot write any more. What did not move was not allowed to: somebody else was there
    first, and the caller leaves it be.
    """
    if not rows:
        return None
    allowed = [f"{old}>{new}" for old, following in transitions.items() for new in following]
    text = _advance(model._meta.db_table, tuple(rows[0]))
    return sql.Part(text, [sql.as_json(rows), sql.array(allowed)], sql.BY_INDEX)


@lru_cache(maxsize=512)
def _advance(table: str, columns: tuple[str, ...]) -> str:
    given = [column for column in columns if column not in ("id", "fence")]
    assignments = [f'"{column}" = r."{column}"' for column in given]
    assignments.append("updated_at = now()")
    fenced = " AND t.fence = r.fence" if "fence" in columns else ""
    return (
        f'UPDATE "{table}" t SET {", ".join(assignments)} '
        f'FROM json_populate_recordset(NULL::"{table}", %s) r '
        f"WHERE {sql.by_key('t.id', 'r.id')}{fenced} "
        "AND t.status || '>' || r.status = ANY(%s::text[]) RETURNING t.id"
    )
