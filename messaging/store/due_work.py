"""What the sweeper looks at: deliveries whose time has come, locked, and their open attempts.

Any number of processes may read at once: rows that another one has locked are left out.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from messaging.domain.deliveries import DueDelivery
from messaging.domain.progress.next_steps import UnknownAttempts
from messaging.domain.statuses import Status
from messaging.models import Attempt, Delivery
from messaging.store import due_organizations
from messaging.store.encodings import remaining_channels
from rme.core.db import sql
from rme.core.db.due import is_due, is_served

ORGANIZATIONS = 20
"""The most organizations in a batch, chosen at random: one that has a million deliveries due does
not delay the others.
"""

_D, _A = Delivery._meta.db_table, Attempt._meta.db_table
_COLUMNS = ", ".join(f"d.{name}" for name in DueDelivery._fields if name not in ("channels", "now"))
_COLUMNS += f", {remaining_channels('d')}, statement_timestamp()"


# The conditions of status and NULL are the index's.
def _lock_due(*, leaving: bool = False) -> str:
    return f"""
SELECT {_COLUMNS} FROM {_D} d
WHERE d.status = %(status)s AND d.due_at IS NOT NULL
  AND NOT (d.status IN ('ACCEPTED', 'SCHEDULED')) AND {is_due("d", leaving=leaving)}
ORDER BY d.due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
"""


# Plan (BY_INDEX): delivery_due in all partitions, in the order of due_at.
# Run by: lock_due, for delivery.sweeper
LOCK_DUE = _lock_due()
# Plan (BY_INDEX): that of LOCK_DUE.
# Run by: lock_due, for delivery.sweeper
LOCK_DUE_LEAVING = _lock_due(leaving=True)
"""What a dead worker held is taken back for an organization that is leaving, too."""

_SEARCH = due_organizations.DueStatement(Status.SCHEDULED, ORGANIZATIONS, by_channel=False)

# Plan: delivery_scheduled in all partitions, one range for each organization.
# Run by: lock_scheduled, for delivery.sweeper
LOCK_SCHEDULED = f"""
SELECT {_COLUMNS}
FROM (
  SELECT * FROM json_to_recordset(%(organizations)s)
    listed(priority smallint, organization_id varchar)
  WHERE {is_served("listed.organization_id")} OFFSET 0) chosen,
LATERAL (
  SELECT * FROM {_D} WHERE status = 'SCHEDULED' AND priority = chosen.priority
    AND organization_id = chosen.organization_id AND due_at <= statement_timestamp()
  ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
) d
"""

# The attempts without an outcome, of the claims (delivery and fence) that made them.
# Plan: attempt_of_delivery in all partitions, once for each claim.
# Run by: open_attempts, for delivery.sweeper
OPEN_ATTEMPTS = f"""
SELECT a.delivery_id
FROM unnest(%(deliveries)s::uuid[], %(fences)s::int[]) held(id, fence)
JOIN {_A} a ON {sql.by_key("a.delivery_id", "held.id")} AND a.fence = held.fence
WHERE a.outcome IS NULL
"""

# An attempt that turned out to be accepted after it was sent again counts as well: it made a copy.
# Plan: attempt_of_delivery in all partitions, once for each delivery.
# Run by: unknown_attempts, for delivery.sweeper
UNKNOWN_ATTEMPTS = f"""
SELECT id, count(DISTINCT fence), max(started_at) FROM (
  SELECT due.id, a.fence, a.started_at,
    bool_or(a.outcome IS DISTINCT FROM 'Accepted') OVER (PARTITION BY due.id, a.device_id)
      AS is_in_doubt
  FROM unnest(%(deliveries)s::uuid[], %(channels)s::text[]) due(id, channel)
  JOIN {_A} a ON {sql.by_key("a.delivery_id", "due.id")}
  WHERE a.channel = due.channel AND (a.outcome IS NULL OR a.outcome IN ('Unknown', 'Accepted'))
) sent WHERE is_in_doubt GROUP BY id
"""


def lock_due(status: Status, limit: int) -> list[DueDelivery]:
    """Lock and return the deliveries of a status that are due, oldest first."""
    text = LOCK_DUE_LEAVING if status is Status.SENDING else LOCK_DUE
    rows = sql.read_in_order(text, {"status": status, "limit": limit})
    return [DueDelivery(*row) for row in rows]


def lock_scheduled(limit: int) -> list[DueDelivery]:
    """Lock and return scheduled deliveries that are due: of some organizations, as many of each.

    TRANSACTIONAL first.
    """
    organizations = _SEARCH.find()
    first = [each for each in organizations if each.priority == organizations[0].priority]
    if not first:
        return []
    listed_organizations = [each._asdict() for each in first]
    values = {"organizations": sql.as_json(listed_organizations), "limit": limit // len(first)}
    return [DueDelivery(*row) for row in sql.fetch(LOCK_SCHEDULED, values)]


def open_attempts(due: Sequence[DueDelivery]) -> set[UUID]:
    """Return the deliveries that have an attempt of their last claim without an outcome."""
    values = {
        "deliveries": [delivery.id for delivery in due],
        "fences": [delivery.fence for delivery in due],
    }
    return {delivery_id for (delivery_id,) in sql.fetch(OPEN_ATTEMPTS, values)}


def unknown_attempts(due: Sequence[DueDelivery]) -> dict[UUID, UnknownAttempts]:
    """Return how often each delivery was sent on its channel with an unknown outcome."""
    if not due:
        return {}
    values = {
        "deliveries": [delivery.id for delivery in due],
        "channels": [delivery.channel for delivery in due],
    }
    rows = sql.fetch(UNKNOWN_ATTEMPTS, values)
    return {key: UnknownAttempts(times, last) for key, times, last in rows}


class NewDueTime(NamedTuple):
    """When a delivery is looked at next; None: never."""

    id: UUID
    due_at: datetime | None


def set_due(times: Collection[NewDueTime]) -> None:
    """Set when locked deliveries are looked at next, by one statement."""
    sql.update_partitioned(Delivery, [time._asdict() for time in times])
