"""Rows whose time has come, or whose turn it is: what a worker takes next.

Only of organizations that this deployment serves. Statements have that as a condition, so that a
worker that slept since it began takes nothing of one that is elsewhere by now.
"""

from uuid import UUID

from django.db import connection
from django.db.models import Model

from rme.core.placement import places


def is_served(column: str, *, leaving: bool = False) -> str:
    """Return the condition that the organization in a column is served here.

    With `leaving` it may be about to leave: what has begun for it is ended.
    """
    return places().here(column, leaving=leaving)


def is_due(table: str, *, at: str = "due_at", leaving: bool = False) -> str:
    """Return the condition that a row is due: its time has come, and its organization is served."""
    organization = is_served(f"{table}.organization_id", leaving=leaving)
    return f"{table}.{at} <= statement_timestamp() AND {organization}"


def next_turn(model: type[Model]) -> UUID | None:
    """Return the id of the RUNNING row that has waited longest, and put it last; None: there is no
    such row.

    The table has `id`, `organization_id`, `state` and `turn_at`, and a partial index by `turn_at`.
    The statement is committed on its own, so that a row whose work fails does not stay first.
    """
    table, served = model._meta.db_table, is_served("t.organization_id")
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {table} SET turn_at = clock_timestamp() WHERE id = ("
            f"SELECT id FROM {table} t WHERE state = 'RUNNING' AND {served} "
            "ORDER BY turn_at LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"
        )
        row = cursor.fetchone()
    return row[0] if row else None
