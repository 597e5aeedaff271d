"""The one way a delivery's status changes: compare-and-set over the transition table, for many
deliveries at once.
"""

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import lru_cache
from uuid import UUID

from messaging.domain.progress.transitions import UNCHANGED, Transition, Unchanged
from messaging.domain.statuses import TRANSITIONS, Status, before
from messaging.models import Delivery
from messaging.store.encodings import DETAIL_LIMIT, NO_CHANNELS, storable
from rme.core.db import sql

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
    rows = [_storable(each) if each.detail else each for each in transitions]
    ordered = sorted(rows, key=lambda transition: str(transition.id))
    columns = tuple(name for name in _COLUMNS if getattr(ordered[0], name) is not UNCHANGED)
    keys = sql.keys("deliveries", (each.id for each in ordered))
    values = {"rows": sql.as_json(ordered), "allowed": _ALLOWED, **keys}
    return sql.bind(_update(columns), values, sql.BY_GENERIC_PLAN)


def _storable(transition: Transition) -> Transition:
    """Return a transition with its detail as PostgreSQL takes it."""
    if transition.detail is None or isinstance(transition.detail, Unchanged):
        return transition
    return replace(transition, detail=storable(transition.detail[:DETAIL_LIMIT]))


# Plan (BY_GENERIC_PLAN): the primary key, in the partitions that the bounds of the keys name.
# Run by: transition_step, for apply_transitions and store.attempts
@lru_cache(maxsize=64)
def _update(columns: tuple[str, ...]) -> str:
    values = {name: f'r."{name}"' for name in columns if name not in ("id", "fence")}
    if "channels" in values:
        values["channels"] = NO_CHANNELS.format(values["channels"])
    assignments = [f'"{name}" = {value}' for name, value in values.items()]
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
        f'FROM json_populate_recordset(NULL::"{_TABLE}", %(rows)s) r '
        f"WHERE {sql.among('t.id', 'deliveries')} AND {sql.same_key('t.id', 'r.id')}{fenced} "
        "AND t.status || '>' || r.status = ANY(%(allowed)s::text[]) RETURNING t.id"
    )


def claim_update(lease_end: str, keys: str, condition: str) -> str:
    """Return the UPDATE that claims deliveries, chosen by their keys and by another condition, for
    a statement that claims deliveries and reads what belongs to them.

    All arguments are SQL. The fence is counted up. The status is compared as an
    expression, so that the planner takes no partial index on it for the way to a row.
    """
    sources = ", ".join(f"'{status}'" for status in before(Status.SENDING))
    return (
        f"UPDATE \"{_TABLE}\" t SET status = '{Status.SENDING}', due_at = {lease_end}, "
        "fence = t.fence + 1, updated_at = now() "
        f"WHERE {keys} AND t.status || '' IN ({sources}) AND {condition} "
        "RETURNING t.*"
    )
