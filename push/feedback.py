"""Feedback of push services: dead tokens, whose devices are deactivated.

It is stored in the transaction of the outcome, and a task processes it later. SQL, because one
statement takes a batch, changes its devices and adds to their histories.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from django.db import connection, transaction

from push.device_changes import HISTORY, DeviceChange, Report, What
from push.models import Device, Feedback
from rme.core import ids
from rme.core.db import sql
from rme.core.db.due import is_served
from rme.core.outcomes import Gone, Outcome

BATCH = 1000
STALE_DAYS = 270
"""FCM drops the token of an Android device that was inactive for this time."""
STALE = "STALE"

_T, _F = Device._meta.db_table, Feedback._meta.db_table
_COLUMNS = (
    "id",
    "organization_id",
    "contact_id",
    "user_id",
    "platform",
    "app",
    "registered_at",
    "inactive_reason",
    "test",
)
_CHANGED = ", ".join(_COLUMNS)
_SWEPT = ", ".join(f"t.{name}" for name in _COLUMNS)
_ENTRY = (
    "jsonb_build_array(jsonb_build_object('at', statement_timestamp(), 'what', 'DEACTIVATED', "
    "'reason', {}))"
)
# A device that registered after the time of death has a live token. Services report
# milliseconds.
_RETIRE = f"""
WITH taken AS (
  DELETE FROM {_F} WHERE id = ANY(ARRAY(
    SELECT id FROM {_F} f WHERE {is_served("f.organization_id")}
    ORDER BY id LIMIT {BATCH} FOR UPDATE SKIP LOCKED)) RETURNING *
), latest AS (
  SELECT DISTINCT ON (device_id) * FROM taken ORDER BY device_id, at DESC
), retired AS (
  UPDATE {_T} t SET active = false, inactive_reason = latest.reason,
    inactive_since = statement_timestamp(),
    history = {HISTORY.format("t.history", _ENTRY.format("latest.reason"))}
  FROM latest WHERE t.id = latest.device_id AND t.organization_id = latest.organization_id
    AND t.test = latest.test AND t.active
    AND date_trunc('milliseconds', t.registered_at) <= latest.at
  RETURNING t.*
)
SELECT (SELECT count(*) FROM taken), {_CHANGED} FROM (SELECT) one LEFT JOIN retired ON true
ORDER BY id
"""
_RETIRE_UNSEEN = f"""
WITH unseen AS (
  SELECT id FROM {_T} d WHERE active AND platform = 'ANDROID'
    AND {is_served("d.organization_id")}
    AND last_seen_at < statement_timestamp() - make_interval(days => %s)
  ORDER BY last_seen_at LIMIT {BATCH} FOR UPDATE SKIP LOCKED
)
UPDATE {_T} t SET active = false, inactive_reason = '{STALE}',
  inactive_since = statement_timestamp(),
  history = {HISTORY.format("t.history", _ENTRY.format(f"'{STALE}'"))}
FROM unseen WHERE t.id = unseen.id
RETURNING {_SWEPT}
"""


class DeviceOutcome(NamedTuple):
    """The outcome of one attempt to reach a device."""

    organization_id: str
    device_id: str
    tried_at: datetime
    outcome: Outcome
    test: bool = False

    @property
    def at(self) -> datetime:
        """Return the time at which the token was dead: the service's own, else the attempt's."""
        since = self.outcome.since if isinstance(self.outcome, Gone) else None
        if since is None:
            return self.tried_at
        return datetime.fromtimestamp(since / 1000, UTC)


def insert_statement(outcomes: Sequence[DeviceOutcome]) -> sql.Step | None:
    """Return the INSERT of dead tokens; None if all are alive."""
    rows = [
        {
            "id": ids.new_id(),
            "organization_id": each.organization_id,
            "device_id": each.device_id,
            "reason": each.outcome.reason[:64],
            "test": each.test,
            "at": each.at,
        }
        for each in outcomes
        if isinstance(each.outcome, Gone)
    ]
    return sql.insert_step(Feedback, rows)


def retire(report: Report) -> tuple[int, int]:
    """Process a batch of feedback; return its size and the number of deactivated devices."""
    with transaction.atomic(savepoint=False), connection.cursor() as cursor:
        cursor.execute(_RETIRE)
        rows = cursor.fetchall()
        retired = [DeviceChange(What.DEACTIVATED, *row) for _, *row in rows if row[0]]
        report(retired)
    return rows[0][0], len(retired)


def retire_unseen(report: Report) -> int:
    """Deactivate a batch of Android devices not seen for 270 days; return their number."""
    with transaction.atomic(savepoint=False), connection.cursor() as cursor:
        cursor.execute(_RETIRE_UNSEEN, [STALE_DAYS])
        unseen = [DeviceChange(What.DEACTIVATED, *row) for row in cursor.fetchall()]
        report(unseen)
    return len(unseen)
