"""Status changes: compare-and-set by a transition table, for many rows in one statement."""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import models

from rme.core.db import sql

Transitions = Mapping[Any, Collection[Any]]


def claim_update(
    model: type[models.Model], transitions: Transitions, target: str, due_at: str
) -> str:
    """Return the UPDATE that claims the rows of a CTE named `picked`: for a statement that picks
    rows, claims them and reads related rows in one go.

    `due_at` is the SQL of the lease's end. The fencing token is incremented. The status is compared
    as an expression, so that the planner does not take a partial index on it for an access path.
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
    """Change the status of rows where the table allows it; return the ids of the changed rows."""
    moved = sql.execute({"moved": advance_part(model, transitions, rows)})
    return {identifier for (identifier,) in moved}


def advance_part(
    model: type[models.Model],
    transitions: Transitions,
    rows: Sequence[sql.Row],
) -> sql.Part | None:
    """Return the UPDATE that changes rows where the table allows it, and returns their ids.

    Each row has `id`, `status` (the new one) and further columns to set, the same in all rows. A
    row with `fence` is changed only if the stored fencing token is the same, so that a worker whose
    lease was claimed by another cannot write any more. A row that was not changed has been changed
    by another process meanwhile, which the caller accepts.
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
