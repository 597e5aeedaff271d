"""The one way a delivery's status changes: compare-and-set over the transition table, for many
deliveries at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import Enum
from functools import lru_cache
from uuid import UUID

from messaging.models.messages import Delivery
from messaging.models.statuses import TRANSITIONS, Status, before
from rme.core.db import sql


class Unchanged(Enum):
    """The type of UNCHANGED, for a column that a transition does not set."""

    UNCHANGED = None


UNCHANGED = Unchanged.UNCHANGED


# Without slots: orjson writes such a dataclass as quickly as a dict, one with slots in four times
# that time.
@dataclass(kw_only=True)
class Transition:
    """A delivery's next status, and the columns that are set with it.

    All transitions of one statement set the same columns.
    """

    id: UUID | str
    status: Status
    due_at: datetime | None
    fence: int | Unchanged = UNCHANGED
    """The claim by which the status was decided: under a later one, the delivery stays as it is."""
    reason: str | Unchanged | None = UNCHANGED
    detail: str | Unchanged | None = UNCHANGED
    waiting: str | Unchanged | None = UNCHANGED
    channel: str | Unchanged = UNCHANGED
    channels: Sequence[str] | Unchanged | None = UNCHANGED
    address: str | Unchanged | None = UNCHANGED
    provider: str | Unchanged | None = UNCHANGED
    account_id: int | Unchanged | None = UNCHANGED
    tries: int | Unchanged = UNCHANGED
    expires_at: datetime | Unchanged = UNCHANGED


_COLUMNS = tuple(field.name for field in fields(Transition))
_ALLOWED = sql.array(
    [f"{old}>{new}" for old, following in TRANSITIONS.items() for new in following]
)
_TABLE = Delivery._meta.db_table


def apply_transitions(transitions: Sequence[Transition]) -> set[UUID]:
    """Change the statuses where the table allows it; return the deliveries that changed.

    The others did not: another worker, a receipt or a person was first.
    """
    changed = sql.execute({"transitions": transition_step(transitions)})
    return {identifier for (identifier,) in changed}


def transition_step(transitions: Sequence[Transition]) -> sql.Step | None:
    """Return the UPDATE that changes the statuses where the table allows it, and returns the ids of
    the deliveries that changed.
    """
    if not transitions:
        return None
    # Rows are locked in the order of their ids, as by receipts, so that the two cannot deadlock.
    ordered = sorted(transitions, key=lambda each: str(each.id))
    columns = tuple(name for name in _COLUMNS if getattr(ordered[0], name) is not UNCHANGED)
    return sql.Step(_update(columns), [sql.as_json(ordered), _ALLOWED], sql.BY_GENERIC_PLAN)


@lru_cache(maxsize=64)
def _update(columns: tuple[str, ...]) -> str:
    assignments = [f'"{name}" = r."{name}"' for name in columns if name not in ("id", "fence")]
    assignments += [
        f"accepted_{name} = coalesce(t.accepted_{name}, CASE WHEN t.accepted_at IS NOT NULL "
        f"AND t.{name} IS DISTINCT FROM r.{name} THEN t.{name} END)"
        for name in ("channel", "provider")
        if name in columns
    ]
    assignments.append("updated_at = now()")
    fenced = " AND t.fence = r.fence" if "fence" in columns else ""
    return (
        f'UPDATE "{_TABLE}" t SET {", ".join(assignments)} '
        f'FROM json_populate_recordset(NULL::"{_TABLE}", %s) r '
        f"WHERE {sql.by_key('t.id', 'r.id')}{fenced} "
        "AND t.status || '>' || r.status = ANY(%s::text[]) RETURNING t.id"
    )


def claim_update(lease_end: str) -> str:
    """Return the UPDATE that claims the deliveries of a CTE named `picked`, for a statement that
    picks deliveries, claims them and reads what belongs to them.

    `lease_end` is SQL. The fence is counted up. The status is compared as an expression, so that
    the planner takes no partial index on it for the way to a row.
    """
    sources = ", ".join(f"'{status}'" for status in before(Status.SENDING))
    return (
        f"UPDATE \"{_TABLE}\" t SET status = '{Status.SENDING}', due_at = {lease_end}, "
        "fence = t.fence + 1, updated_at = now() FROM picked "
        f"WHERE {sql.by_key('t.id', 'picked.id')} AND t.status || '' IN ({sources}) "
        "RETURNING t.*"
    )
