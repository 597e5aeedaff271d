"""The outcomes of provider accounts' attempts in the last hour, for the admin."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from django.db import connection

from messaging.delivery.accounts import CircuitState, look
from messaging.models import Attempt, ProviderAccount
from messaging.reports.health import ATTEMPTS_LIMIT, PERIOD
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


class OutcomeRow(NamedTuple):
    """Attempts with the same outcome and reason."""

    outcome: str
    reason: str
    sends: int
    p95_ms: int | None
    last_at: datetime


@dataclass(frozen=True, slots=True)
class AccountHour:
    """The last hour of an account: the most frequent outcomes first."""

    circuit: CircuitState
    rows: list[OutcomeRow]


def read(account: ProviderAccount) -> AccountHour:
    """Read an account's last hour, in one query."""
    since = ids.at_least(datetime.now(UTC) - PERIOD)
    with connection.cursor() as cursor:
        cursor.execute(_ROWS, [since, account.organization_id, account.pk])
        rows = [OutcomeRow(*row) for row in cursor.fetchall()]
    return AccountHour(look([account.pk])[account.pk].circuit, rows)


LATEST = 10_000
"""The most attempts of an organization that are read for a list."""

_SUMS = f"""
SELECT account_id, count(*), count(*) FILTER (WHERE outcome = 'Accepted'),
  count(*) FILTER (WHERE outcome IN ('Retryable', 'Misconfigured', 'Unknown')),
  percentile_disc(0.95) WITHIN GROUP (ORDER BY latency_ms) FILTER (WHERE latency_ms IS NOT NULL)
FROM unnest(%s::text[]) one(id), LATERAL (
  SELECT * FROM {Attempt._meta.db_table} WHERE id >= %s AND organization_id = one.id
  ORDER BY id DESC LIMIT {LATEST}) latest
WHERE account_id = ANY(%s) GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class AccountSummary:
    """The last hour of an account in one line. `failed`: what counts against the provider."""

    circuit: CircuitState
    sends: int = 0
    accepted: int = 0
    failed: int = 0
    p95_ms: int | None = None


def read_summaries(accounts: Collection[ProviderAccount]) -> dict[int, AccountSummary]:
    """Read the last hour of several accounts, in one query and one call to Redis."""
    available = look([account.pk for account in accounts])
    if not available:
        return {}
    since = ids.at_least(datetime.now(UTC) - PERIOD)
    organizations = sorted({account.organization_id for account in accounts})
    with connection.cursor() as cursor:
        cursor.execute(_SUMS, [organizations, since, list(available)])
        found = {account_id: figures for account_id, *figures in cursor.fetchall()}
    return {pk: AccountSummary(each.circuit, *found.get(pk, ())) for pk, each in available.items()}
