"""Make sure that no process writes for an organization any more, before its last rows are copied.

A placement that is committed is known to all processes after `KNOWN_SECONDS`; statements that ask
the database know it at once. Whatever began before is a transaction that is open then: it is
waited for, as CREATE INDEX CONCURRENTLY does.
"""

import time
from collections.abc import Collection

from rme.tenants.cells.moving.databases import Connection
from rme.tenants.cells.placements import KNOWN_SECONDS, Phase

STEP_SECONDS = 0.01
MARGIN_SECONDS = 0.1
_OPEN = """
SELECT l.pid, l.virtualtransaction FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'virtualxid' AND l.mode = 'ExclusiveLock' AND l.granted
  AND a.datname = current_database() AND a.backend_type = 'client backend' AND l.pid <> ALL(%s)
"""
_PLACE = """
INSERT INTO tenants_placement (organization_id, phase, cell, since)
VALUES (%s, %s, %s, statement_timestamp())
ON CONFLICT (organization_id) DO UPDATE SET phase = excluded.phase, cell = excluded.cell,
  since = excluded.since
"""
_SENDING = """
SELECT count(*) FROM messaging_delivery
WHERE organization_id = %s AND status = 'SENDING' AND due_at IS NOT NULL
"""
# The results of webhook requests that are still in flight are refused: they are sent again.
_RELEASE_ENDPOINTS = """
UPDATE messaging_webhookendpoint SET fence = fence + 1, free_at = statement_timestamp()
WHERE organization_id = %s AND free_at > statement_timestamp() AND failures = 0
"""


class TakesTooLong(Exception):
    """What has to end before the switch did not end in time; the message says what."""


def place(side: Connection, organization_id: str, phase: Phase, cell: str) -> None:
    """Set an organization's phase in a cell."""
    side.execute(_PLACE, [organization_id, phase.value, cell])


def remove(side: Connection, organization_id: str) -> None:
    """Let an organization be in a cell as any other."""
    side.execute("DELETE FROM tenants_placement WHERE organization_id = %s", [organization_id])


def wait_until_known() -> None:
    """Wait until each process has read the placements again."""
    time.sleep(KNOWN_SECONDS + MARGIN_SECONDS)


def wait_for_transactions(side: Connection, own: Collection[int], until: float) -> None:
    """Wait for the transactions that are open now; `own` are this move's. Raise TakesTooLong."""
    excluded = [*own, side.info.backend_pid]
    left = set(side.execute(_OPEN, [excluded]).fetchall())
    while left:
        if time.monotonic() > until:
            pids = ", ".join(str(pid) for pid, _ in sorted(left))
            raise TakesTooLong(f"Transactions stay open in PostgreSQL: those of process {pids}.")
        time.sleep(STEP_SECONDS)
        left &= set(side.execute(_OPEN, [excluded]).fetchall())


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
    """Let no result of a webhook request that is in flight be recorded any more."""
    side.execute(_RELEASE_ENDPOINTS, [organization_id])
