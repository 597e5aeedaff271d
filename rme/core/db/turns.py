"""Turns: of the rows in state RUNNING, the one that has waited longest is worked on next.

Such a table has `id`, `organization_id`, `state` and `turn_at`, and a partial index by `turn_at`.
"""

from uuid import UUID

from django.db import connection
from django.db.models import Model

from rme.core import placement

_HERE = placement.here("t.organization_id")


def next_turn(model: type[Model]) -> UUID | None:
    """Return the id of the row that is next, and put it last; None if none is running here.

    The statement is committed on its own, so that a row whose work fails does not stay first.
    """
    table = model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {table} SET turn_at = clock_timestamp() WHERE id = ("
            f"SELECT id FROM {table} t WHERE state = 'RUNNING' AND {_HERE} "
            "ORDER BY turn_at LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"
        )
        row = cursor.fetchone()
    return row[0] if row else None
