"""The attempts that receipts are about, with the state of their deliveries."""

from collections.abc import Collection, Mapping
from typing import NamedTuple
from uuid import UUID

from messaging.models import Attempt, Delivery
from rme.core.db import sql

# A failure counts for the last attempt only, if the provider may have accepted that one. A later
# claim may have ended without an attempt.
_ATTEMPTS = f"""
WITH named AS MATERIALIZED (
  SELECT id, account_id, delivery_id, channel, provider, fence, outcome
  FROM {Attempt._meta.db_table} WHERE id = ANY(%s::uuid[]) ORDER BY id
)
SELECT a.id, a.account_id, a.delivery_id, a.channel, a.provider, d.status,
  coalesce(a.outcome, 'Unknown') IN ('Accepted', 'Unknown') AND (a.fence = d.fence OR NOT EXISTS (
    SELECT FROM {Attempt._meta.db_table} later
    WHERE {sql.by_key("later.delivery_id", "d.id")} AND later.fence > a.fence))
FROM named a JOIN {Delivery._meta.db_table} d ON {sql.by_key("d.id", "a.delivery_id")}
ORDER BY a.delivery_id FOR UPDATE OF d
"""


class ReportedAttempt(NamedTuple):
    """The attempt of a receipt, and the state of its delivery."""

    id: UUID
    account_id: int | None
    delivery_id: UUID
    channel: str
    provider: str | None
    status: str
    """The delivery's."""
    is_last: bool
    """It is the delivery's last attempt, and may have been accepted."""


def read_and_lock(attempt_ids: Collection[UUID | None]) -> Mapping[UUID | None, ReportedAttempt]:
    """Read attempts, and lock their deliveries: one statement, and none if there are none."""
    if not attempt_ids:
        return {}
    rows = sql.read_in_order(_ATTEMPTS, [sql.array([str(each) for each in attempt_ids])])
    return {row[0]: ReportedAttempt(*row) for row in rows}
