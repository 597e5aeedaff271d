"""What push services say of tokens, and what becomes of the devices.

It is noted in the transaction of the outcome that said it, and taken up later by a task: one
statement a batch, however many devices it is about.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from django.db import connection

from push.devices import HISTORY
from push.models import Device, Feedback
from rme.core import ids
from rme.core.db import sql
from rme.core.outcomes import Gone, Outcome

BATCH = 1000
STALE_DAYS = 270
"""FCM drops the token of an Android device that was away for as long."""
STALE = "STALE"

_T, _F = Device._meta.db_table, Feedback._meta.db_table
_ENTRY = (
    "jsonb_build_array(jsonb_build_object('at', statement_timestamp(), 'what', 'DEACTIVATED', "
    "'reason', {}))"
)
# Who registered after the token was seen dead has a token that lives. The services tell
# milliseconds.
_RETIRE = f"""
WITH taken AS (
  DELETE FROM {_F} WHERE id = ANY(ARRAY(
    SELECT id FROM {_F} ORDER BY id LIMIT {BATCH} FOR UPDATE SKIP LOCKED)) RETURNING *
), said AS (
  SELECT DISTINCT ON (device_id) * FROM taken ORDER BY device_id, at DESC
), retired AS (
  UPDATE {_T} t SET active = false, inactive_reason = said.reason,
    inactive_since = statement_timestamp(),
    history = {HISTORY.format("t.history", _ENTRY.format("said.reason"))}
  FROM said WHERE t.id = said.device_id AND t.organization_id = said.organization_id
    AND t.active AND date_trunc('milliseconds', t.registered_at) <= said.at
  RETURNING t.id
)
SELECT (SELECT count(*) FROM taken), (SELECT count(*) FROM retired)
"""
_SWEEP = f"""
WITH unseen AS (
  SELECT id FROM {_T} WHERE active AND platform = 'ANDROID'
    AND last_seen_at < statement_timestamp() - make_interval(days => %s)
  ORDER BY last_seen_at LIMIT {BATCH} FOR UPDATE SKIP LOCKED
)
UPDATE {_T} t SET active = false, inactive_reason = '{STALE}',
  inactive_since = statement_timestamp(),
  history = {HISTORY.format("t.history", _ENTRY.format(f"'{STALE}'"))}
FROM unseen WHERE t.id = unseen.id
"""


class Said(NamedTuple):
    """The outcome of one attempt at one device."""

    organization_id: str
    device_id: str
    tried_at: datetime
    outcome: Outcome

    @property
    def at(self) -> datetime:
        """Give the time until which the token counts as dead."""
        since = self.outcome.since if isinstance(self.outcome, Gone) else None
        if since is None:
            return self.tried_at
        return datetime.fromtimestamp(since / 1000, UTC)


def note(said: Sequence[Said]) -> None:
    """Note which tokens are dead: one statement, none where all live."""
    sql.execute({"feedback": noting(said)})


def noting(said: Sequence[Said]) -> sql.Part | None:
    """Return the INSERT that notes which tokens are dead."""
    rows = [
        {
            "id": ids.new_id(),
            "organization_id": each.organization_id,
            "device_id": each.device_id,
            "reason": each.outcome.reason[:64],
            "at": each.at,
        }
        for each in said
        if isinstance(each.outcome, Gone)
    ]
    return sql.insert_step(Feedback, rows)


def retire() -> tuple[int, int]:
    """Take up a batch of what was noted; give how many there were, and devices deactivated."""
    with connection.cursor() as cursor:
        cursor.execute(_RETIRE)
        taken, retired = cursor.fetchone()
    return taken, retired


def sweep() -> int:
    """Deactivate a batch of Android devices that were not seen for 270 days; give how many."""
    with connection.cursor() as cursor:
        cursor.execute(_SWEEP, [STALE_DAYS])
        return int(cursor.rowcount)
