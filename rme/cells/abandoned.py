"""The pause of a move whose process was killed: without it the organization would stay paused.

A move holds an advisory lock as long as it lives. Who gets the lock of a move that has paused its
organization has found a dead one. Nothing was switched, so the organization goes on here; the copy
is kept for `move_organization`, given again or with `--abort`.
"""

import structlog
from django.conf import settings
from django.db import connection

from rme.cells.placements import forget

log = structlog.get_logger(__name__)

TRY_LOCK = "pg_try_advisory_xact_lock(hashtextextended('move ' || {}, 17))"
"""SQL that takes the lock of an organization's move until the transaction ends, if it is free."""
# In steps, so that no lock is tried but those of paused moves.
_END = f"""
WITH pausing AS MATERIALIZED (
  SELECT organization_id FROM tenants_move WHERE step = 'PAUSING'
), dead AS MATERIALIZED (
  SELECT organization_id FROM pausing WHERE {TRY_LOCK.format("organization_id")}
), ended AS (
  UPDATE tenants_move m SET step = 'COPYING' FROM dead
  WHERE m.organization_id = dead.organization_id AND m.step = 'PAUSING'
  RETURNING m.organization_id
)
DELETE FROM tenants_placement p USING ended WHERE p.organization_id = ended.organization_id
RETURNING p.organization_id
"""


def end_abandoned_pauses() -> list[str]:
    """Let organizations go on whose move was killed in its pause; return them. One statement, and
    none in a deployment without `CELL`.
    """
    if not settings.CELL:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_END)
        ended = sorted(organization for (organization,) in cursor.fetchall())
    if ended:
        forget()
        log.error("cells.pause_ended", organizations=ended)
    return ended
