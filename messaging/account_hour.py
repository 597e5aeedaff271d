"""What became of one account's sends in the last hour, by outcome and reason (for the admin)."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from django.db import connection

from messaging import circuits
from messaging.health import ATTEMPTS_LIMIT, PERIOD
from messaging.models import Attempt, ProviderAccount
from rme.core import ids

ROWS = 20

_ROWS = f"""
SELECT coalesce(outcome, 'no answer yet'), coalesce(reason, ''), count(*),
  percentile_disc(0.95) WITHIN GROUP (ORDER BY latency_ms) FILTER (WHERE latency_ms IS NOT NULL),
  max(started_at)
FROM (SELECT * FROM {Attempt._meta.db_table} WHERE id >= %s AND organization_id = %s
      ORDER BY id DESC LIMIT {ATTEMPTS_LIMIT}) latest
WHERE account_id = %s GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT {ROWS}
"""


class Line(NamedTuple):
    """Sends that ended alike."""

    outcome: str
    reason: str
    sends: int
    p95_ms: int | None
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Hour:
    """The last hour: the most frequent ends first."""

    circuit: circuits.State
    lines: list[Line]


def of(account: ProviderAccount) -> Hour:
    """Read an account's last hour, in one query."""
    since = ids.at_least(datetime.now(UTC) - PERIOD)
    with connection.cursor() as cursor:
        cursor.execute(_ROWS, [since, account.organization_id, account.pk])
        lines = [Line(*row) for row in cursor.fetchall()]
    return Hour(circuits.states([account.pk])[account.pk], lines)
