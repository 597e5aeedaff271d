"""The outcomes of provider accounts' attempts in the last hour, for health and for the admin.

SQL, because each statement takes a percentile of an organization's latest attempts alone: their
number bounds what a look costs, and the ORM cannot group the rows of a limited query.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

from messaging.delivery.accounts import CircuitState, shared_availability
from messaging.models import Attempt, ProviderAccount
from rme.core import ids

PERIOD = timedelta(hours=1)
ATTEMPTS_LIMIT = 100_000
"""The most attempts of an organization that are read, the latest ones."""
LATEST = 10_000
"""The most attempts of an organization that are read for a list of accounts."""
ROWS = 20

_P95 = """percentile_disc(0.95) WITHIN GROUP (ORDER BY latency_ms)
    FILTER (WHERE latency_ms IS NOT NULL)"""
_LATEST = f"""(SELECT * FROM {Attempt._meta.db_table} WHERE id >= %s AND organization_id = {{}}
  ORDER BY id DESC LIMIT {{}}) latest"""

# Rejections for the recipient's or the content's sake do not count against a provider.
_ORGANIZATION = f"""
SELECT account_id, channel,
  count(*) FILTER (WHERE outcome = 'Accepted'),
  count(*) FILTER (WHERE outcome IN ('Accepted', 'Retryable', 'Misconfigured', 'Unknown')),
  {_P95},
  max(started_at) FILTER (WHERE outcome = 'Accepted'),
  (array_agg(reason ORDER BY id DESC) FILTER (WHERE outcome <> 'Accepted'))[1],
  max(started_at) FILTER (WHERE outcome = 'Misconfigured')
FROM {_LATEST.format("%s", ATTEMPTS_LIMIT)} GROUP BY account_id, channel
"""
_ROWS = f"""
SELECT coalesce(outcome, 'no answer yet'), coalesce(reason, ''), count(*), {_P95}, max(started_at)
FROM {_LATEST.format("%s", ATTEMPTS_LIMIT)}
WHERE account_id = %s GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT {ROWS}
"""
_SUMMARIES = f"""
SELECT account_id, count(*), count(*) FILTER (WHERE outcome = 'Accepted'),
  count(*) FILTER (WHERE outcome IN ('Retryable', 'Misconfigured', 'Unknown')), {_P95}
FROM unnest(%s::text[]) one(id), LATERAL {_LATEST.format("one.id", LATEST)}
WHERE account_id = ANY(%s) GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class AccountOutcomes:
    """The outcomes of an account's attempts in the last hour."""

    accepted: int = 0
    answered: int = 0
    p95_ms: int | None = None
    last_success: datetime | None = None
    last_error: str | None = None
    last_misconfigured: datetime | None = None

    @property
    def rate(self) -> float | None:
        return round(self.accepted / self.answered, 4) if self.answered else None

    @property
    def misconfigured(self) -> bool:
        """Return whether the provider refused the account itself, and accepted nothing since."""
        if self.last_misconfigured is None:
            return False
        return self.last_success is None or self.last_success < self.last_misconfigured


def read_organization(organization_id: str) -> dict[tuple[int | None, str], AccountOutcomes]:
    """Read the last hour of all accounts of an organization, by account and channel; one query."""
    rows = _select(_ORGANIZATION, [_since(), organization_id])
    return {(row[0], row[1]): AccountOutcomes(*row[2:]) for row in rows}


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
    rows = _select(_ROWS, [_since(), account.organization_id, account.pk])
    return AccountHour(
        shared_availability([account.pk])[account.pk].circuit, [OutcomeRow(*row) for row in rows]
    )


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
    available = shared_availability([account.pk for account in accounts])
    if not available:
        return {}
    organizations = sorted({account.organization_id for account in accounts})
    rows = _select(_SUMMARIES, [organizations, _since(), list(available)])
    found = {account_id: figures for account_id, *figures in rows}
    return {pk: AccountSummary(each.circuit, *found.get(pk, ())) for pk, each in available.items()}


def _since() -> UUID:
    return ids.at_least(datetime.now(UTC) - PERIOD)


def _select(statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found
