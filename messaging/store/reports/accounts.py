"""The latest attempts and circuit changes of provider accounts.

Each statement reads an organization's latest attempts alone: their number bounds what a look costs.
"""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from messaging.models import Attempt, CircuitChange
from rme.core import ids
from rme.core.db import sql

LATEST = 10_000
"""The most attempts of an organization that are read, the latest ones: every page reads as many, so
that all say the same.
"""
ROWS = 20

_P95 = """percentile_disc(0.95) WITHIN GROUP (ORDER BY latency_ms)
    FILTER (WHERE latency_ms IS NOT NULL)"""


def _latest(organization: str) -> str:
    return f"""(SELECT * FROM {Attempt._meta.db_table}
  WHERE id >= %(since)s AND organization_id = {organization}
  ORDER BY id DESC LIMIT %(limit)s) latest"""


# Rejections for the recipient's or the content's sake do not count against a provider.
_OUTCOMES = f"""count(*) FILTER (WHERE outcome = 'Accepted'),
  count(*) FILTER (WHERE outcome IN ('Accepted', 'Retryable', 'Misconfigured', 'Unknown')),
  {_P95},
  max(started_at) FILTER (WHERE outcome = 'Accepted'),
  (array_agg(reason ORDER BY latest.id DESC) FILTER (WHERE outcome <> 'Accepted'))[1],
  max(started_at) FILTER (WHERE outcome = 'Misconfigured'),
  count(*)"""
# Plan: attempt_of_organization, from its end, in the partitions since then.
# Run by: read_organization, for reports.account_hour and reports.health
READ_ORGANIZATION = f"""
SELECT account_id, channel, {_OUTCOMES}
FROM {_latest("%(organization)s")} GROUP BY account_id, channel
"""
# Plan: that of READ_ORGANIZATION.
# Run by: read_outcomes, for reports.account_hour
READ_OUTCOMES = f"""
SELECT coalesce(outcome, 'no answer yet'), coalesce(reason, ''), count(*), {_P95}, max(started_at)
FROM {_latest("%(organization)s")}
WHERE account_id = %(account)s GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT {ROWS}
"""
# Plan: that of READ_ORGANIZATION, once for each organization.
# Run by: read_summaries, for reports.account_hour
READ_SUMMARIES = f"""
SELECT account_id, {_OUTCOMES}
FROM unnest(%(organizations)s::text[]) one(id), LATERAL {_latest("one.id")}
WHERE account_id = ANY(%(accounts)s) GROUP BY 1
"""
# Plan: circuit_change_of, from the end of each account.
# Run by: read_changes, for delivery.accounts.circuit_history
READ_CHANGES = f"""
SELECT change.account_id, change.is_open, change.why, change.at
FROM unnest(%(accounts)s::bigint[]) one(id), LATERAL (
  SELECT * FROM {CircuitChange._meta.db_table} WHERE account_id = one.id
  ORDER BY id DESC LIMIT %(limit)s) change
ORDER BY change.id DESC
"""


class AccountOutcomes(NamedTuple):
    """The outcomes of an account's attempts in a period."""

    accepted: int = 0
    answered: int = 0
    p95_ms: int | None = None
    last_success: datetime | None = None
    last_error: str | None = None
    last_misconfigured: datetime | None = None
    sends: int = 0

    @property
    def rate(self) -> float | None:
        return round(self.accepted / self.answered, 4) if self.answered else None

    @property
    def misconfigured(self) -> bool:
        """Return whether the provider refused the account itself, and accepted nothing since."""
        if self.last_misconfigured is None:
            return False
        return self.last_success is None or self.last_success < self.last_misconfigured


class OutcomeRow(NamedTuple):
    """Attempts with the same outcome and reason."""

    outcome: str
    reason: str
    sends: int
    p95_ms: int | None
    last_at: datetime


def read_organization(
    organization_id: str, since: datetime
) -> dict[tuple[int | None, str], AccountOutcomes]:
    """Read the outcomes of all accounts of an organization, by account and channel."""
    rows = sql.fetch(
        READ_ORGANIZATION,
        {"organization": organization_id, "since": ids.at_least(since), "limit": LATEST},
    )
    return {(row[0], row[1]): AccountOutcomes(*row[2:]) for row in rows}


def read_outcomes(organization_id: str, account_id: int, since: datetime) -> list[OutcomeRow]:
    """Read an account's outcomes, the most frequent first."""
    rows = sql.fetch(
        READ_OUTCOMES,
        {
            "organization": organization_id,
            "account": account_id,
            "since": ids.at_least(since),
            "limit": LATEST,
        },
    )
    return [OutcomeRow(*row) for row in rows]


def read_summaries(
    organization_ids: Collection[str],
    account_ids: Collection[int],
    since: datetime,
    limit: int,
) -> dict[int, AccountOutcomes]:
    """Read the outcomes of several accounts, by account; `limit` is that of an organization."""
    rows = sql.fetch(
        READ_SUMMARIES,
        {
            "organizations": list(organization_ids),
            "accounts": list(account_ids),
            "since": ids.at_least(since),
            "limit": limit,
        },
    )
    return {account_id: AccountOutcomes(*outcomes) for account_id, *outcomes in rows}


def read_changes(account_ids: Collection[int], limit: int) -> dict[int, list[CircuitChange]]:
    """Return the latest changes of accounts' circuits, the latest first."""
    changes: dict[int, list[CircuitChange]] = {account_id: [] for account_id in account_ids}
    values = {"accounts": list(account_ids), "limit": limit}
    for account_id, is_open, cause, at in sql.fetch(READ_CHANGES, values):
        change = CircuitChange(account_id=account_id, is_open=is_open, why=cause, at=at)
        changes[account_id].append(change)
    return changes
