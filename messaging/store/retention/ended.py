"""Messages that may be archived: finding them, and deleting them once they are in a file.

SQL, because a batch is found and deleted by one statement each, and rows are compared by their
versions.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import connection, models
from django.db.models.expressions import RawSQL

from messaging.domain.statuses import Status
from messaging.models import Attempt, Delivery, Event, Message, MessageContent
from messaging.store.lookups import is_of_message
from rme.core import ids
from rme.core.db import sql

_M, _D, _A, _E = (model._meta.db_table for model in (Message, Delivery, Attempt, Event))
_UNFINISHED = [Status.ACCEPTED, Status.SCHEDULED, Status.SENDING, Status.UNKNOWN]

_RANGE = "m.organization_id = %(organization)s AND m.id >= %(start)s AND m.id < %(end)s"
# Plan (BY_INDEX): message_newest, an organization's messages in the order of their ids, in the
# partitions between the two ids.
# Run by: first, for archive.moving
FIND_FIRST = f"""SELECT m.id FROM {_M} m WHERE {_RANGE}
ORDER BY m.id LIMIT 1"""
# Plan (BY_INDEX): that of FIND_FIRST; deliveries, events and contents of each by their keys.
# Run by: find, for archive.moving
FIND_ENDED = f"""SELECT m.id FROM {_M} m WHERE {_RANGE}
AND NOT EXISTS (SELECT FROM {_D} d WHERE {is_of_message("d", "m.id")}
  AND (d.status = ANY(%(unfinished)s::text[]) OR d.due_at IS NOT NULL
    OR d.updated_at >= %(cutoff)s::timestamptz))
AND NOT EXISTS (SELECT FROM {_E} e WHERE e.message_id = m.id AND e.at >= %(cutoff)s::timestamptz)
AND NOT EXISTS (SELECT FROM {MessageContent._meta.db_table} c WHERE c.id = m.id)
ORDER BY m.id LIMIT %(limit)s"""


def first(organization_id: str, start: UUID, end: UUID) -> UUID | None:
    """Return the oldest message of an organization, of those between two ids."""
    values = {"organization": organization_id, "start": str(start), "end": str(end)}
    rows = sql.read_in_order(FIND_FIRST, values)
    return rows[0][0] if rows else None


def find(
    organization_id: str, start: UUID, end: UUID, *, cutoff: datetime, limit: int
) -> list[UUID]:
    """Return messages that have ended, and did not change since a moment, oldest first.

    Those whose content is still kept wait: erasure and export find it by the delivery.
    """
    values = {
        "organization": organization_id,
        "start": str(start),
        "end": str(end),
        "unfinished": sql.array(_UNFINISHED),
        "cutoff": cutoff.isoformat(),
        "limit": limit,
    }
    return [key for (key,) in sql.read_in_order(FIND_ENDED, values)]


def row_version(model: type[models.Model]) -> RawSQL:
    """Return the version of a row, which each change of the row replaces, for a query of rows."""
    return RawSQL(  # noqa: S611 (a table's name)
        f'"{model._meta.db_table}".xmin::text::bigint', [], output_field=models.BigIntegerField()
    )


# Plan: primary keys, attempt_of_delivery and event_of_message, in the partitions since then.
# Run by: delete, for archive.hand_over
DELETE = {
    # The deliveries first: a receipt that is being applied holds their locks.
    "deliveries": f"""DELETE FROM {_D} d
      WHERE d.id >= %(since)s AND {is_of_message("d", "ANY(%(keys)s)")}
      RETURNING d.id, d.xmin::text::bigint AS version""",
    "attempts": f"""DELETE FROM {_A} WHERE id >= %(since)s AND delivery_id = ANY(%(deliveries)s)
      RETURNING id, xmin::text::bigint AS version""",
    "events": f"""DELETE FROM {_E} WHERE id >= %(since)s AND message_id = ANY(%(keys)s)
      RETURNING id, xmin::text::bigint AS version""",
    "messages": f"""DELETE FROM {_M} WHERE id = ANY(%(keys)s)
      RETURNING id, xmin::text::bigint AS version""",
}


def delete(keys: Sequence[UUID]) -> dict[str, tuple[int, int]]:
    """Delete messages with all their rows, by four statements. Return of each table how many rows
    were deleted, and the sum of their versions.
    """
    counts: dict[str, tuple[int, int]] = {}
    values: dict[str, UUID | list[UUID]] = {
        "since": ids.earliest_concurrent(min(keys)),
        "keys": list(keys),
    }
    with connection.cursor() as cursor:
        for name, statement in DELETE.items():
            cursor.execute(statement, values)
            rows = cursor.fetchall()
            counts[name] = len(rows), sum(version for _, version in rows)
            if name == "deliveries":
                values["deliveries"] = [key for key, _ in rows]
    return counts
