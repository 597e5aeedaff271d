"""The phases of an organization on both sides of a move, and waiting until no process writes.

A placement that is committed is known to all processes after `KNOWN_SECONDS`; statements that ask
the database know it at once. Whatever began before is a transaction that is open then: it is
waited for, as CREATE INDEX CONCURRENTLY does. Moves write no rows of organizations that are here,
so their transactions are not waited for.
"""

import time
from uuid import UUID

from rme.cells.moving.databases import APPLICATION, Connection
from rme.cells.placements import KNOWN_SECONDS, Location, Phase

STEP_SECONDS = 0.01
MARGIN_SECONDS = 0.1
_OPEN = """
SELECT l.pid, l.virtualtransaction, coalesce(nullif(a.application_name, ''), a.usename, '')
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'virtualxid' AND l.mode = 'ExclusiveLock' AND l.granted
  AND a.datname = current_database() AND a.backend_type = 'client backend'
  AND a.application_name <> %s
"""
_PLACE = """
INSERT INTO tenants_placement (organization_id, phase, cell, since)
VALUES (%s, %s, %s, statement_timestamp())
ON CONFLICT (organization_id) DO UPDATE SET phase = excluded.phase, cell = excluded.cell,
  since = excluded.since, pause = NULL
"""
# Only what is free there may arrive: an id that is in use is another organization's.
_ARRIVE = """
INSERT INTO tenants_placement (organization_id, phase, cell, since)
SELECT %(organization)s::text, 'ARRIVING', %(cell)s::text, statement_timestamp()
WHERE NOT EXISTS (SELECT FROM tenants_organization WHERE id = %(organization)s::text)
   OR EXISTS (SELECT FROM tenants_placement WHERE organization_id = %(organization)s::text
     AND (phase = 'ARRIVING' OR pause IS NOT NULL) AND cell = %(cell)s::text)
ON CONFLICT (organization_id) DO UPDATE
  SET phase = 'ARRIVING', cell = excluded.cell, since = excluded.since, pause = NULL
  WHERE tenants_placement.phase = 'MOVED'
    OR (tenants_placement.phase = 'ARRIVING' OR tenants_placement.pause IS NOT NULL)
      AND tenants_placement.cell = excluded.cell
"""
_AWAIT = """
UPDATE tenants_placement SET phase = 'PAUSED', pause = %s, since = statement_timestamp()
WHERE organization_id = %s AND phase = 'ARRIVING' AND cell = %s
"""
_LOCATION = "SELECT phase, cell FROM tenants_placement WHERE organization_id = %s"
_SENDING = """
SELECT count(*) FROM messaging_delivery
WHERE organization_id = %s AND status = 'SENDING' AND due_at IS NOT NULL
"""
# Their leases would only delay the target: results that come now are refused by `outbox.record`.
_RELEASE_ENDPOINTS = """
UPDATE messaging_webhookendpoint SET fence = fence + 1, free_at = statement_timestamp()
WHERE organization_id = %s AND free_at > statement_timestamp() AND failures = 0
"""


class TakesTooLong(Exception):
    """What has to end before the switch did not end in time; the message says what."""


def place(side: Connection, organization_id: str, phase: Phase, cell: str) -> None:
    """Set an organization's phase in a cell."""
    side.execute(_PLACE, [organization_id, phase.value, cell])


def go_on(source: Connection, organization_id: str) -> None:
    """Delete the phase of an organization in the cell that it was to leave: it stays there."""
    source.execute(
        "DELETE FROM tenants_placement "
        "WHERE organization_id = %s AND phase IN ('LEAVING', 'PAUSED')",
        [organization_id],
    )


def location(side: Connection, organization_id: str) -> Location:
    """Return the placement of an organization in a cell."""
    row = side.execute(_LOCATION, [organization_id]).fetchone()
    return Location(*row) if row else Location()


def arrive(target: Connection, organization_id: str, cell: str) -> bool:
    """Set an organization ARRIVING from a cell. Return False if the target has an organization
    of that id, or one arrives there from another cell.
    """
    parameters = {"organization": organization_id, "cell": cell}
    return bool(target.execute(_ARRIVE, parameters).rowcount)


def await_switch(target: Connection, organization_id: str, cell: str, pause: UUID) -> bool:
    """Set an organization PAUSED in the target. Return False if it does not arrive there now."""
    return bool(target.execute(_AWAIT, [pause, organization_id, cell]).rowcount)


def leave_nothing(target: Connection, organization_id: str, cell: str) -> None:
    """Forget that an organization was to arrive from a cell."""
    target.execute(
        "DELETE FROM tenants_placement "
        "WHERE organization_id = %s AND phase = 'ARRIVING' AND cell = %s",
        [organization_id, cell],
    )


def wait_until_known() -> None:
    """Wait until each process has read the placements again."""
    time.sleep(KNOWN_SECONDS + MARGIN_SECONDS)


def wait_for_transactions(side: Connection, until: float) -> None:
    """Wait for the transactions that are open now, but for those of moves. Raise TakesTooLong."""
    transactions = set(side.execute(_OPEN, [APPLICATION]).fetchall())
    while transactions:
        if time.monotonic() > until:
            processes = ", ".join(f"{pid} ({name})" for pid, _, name in sorted(transactions))
            raise TakesTooLong(f"Transactions stay open in PostgreSQL, of process {processes}.")
        time.sleep(STEP_SECONDS)
        transactions &= set(side.execute(_OPEN, [APPLICATION]).fetchall())


def wait_for_sends(side: Connection, organization_id: str, until: float) -> None:
    """Wait until no delivery is claimed any more: each is recorded, or its lease ends."""
    while count := sends(side, organization_id):
        if time.monotonic() > until:
            raise TakesTooLong(f"{count} deliveries are still being sent.")
        time.sleep(STEP_SECONDS)


def sends(side: Connection, organization_id: str) -> int:
    """Return how many deliveries workers have claimed."""
    (row,) = side.execute(_SENDING, [organization_id]).fetchall()
    return int(row[0])


def release_endpoints(side: Connection, organization_id: str) -> None:
    """Release the webhook endpoints that workers hold; the workers can no longer do so."""
    side.execute(_RELEASE_ENDPOINTS, [organization_id])
