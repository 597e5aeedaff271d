"""The health report of an organization: checks of the deployment, and the organization's figures.

The figures are of the organization alone. Their cost is bounded: they are read at most every two
seconds, over the attempts of an hour.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypedDict

from django.db import connection

from messaging.delivery.accounts import SIMULATORS, Availability, look
from messaging.models import Attempt, Delivery
from messaging.policy import organization_policy
from messaging.reports import checks, configuration
from messaging.reports.checks import DEGRADED, DOWN, OK, Check
from rme import __version__
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.channels import Channel
from rme.core.db.clock import iso
from rme.core.provider import Provider

PERIOD = timedelta(hours=1)
ATTEMPTS_LIMIT = 100_000
"""The most attempts of an organization that are read, the latest ones."""
GOOD_RATE, BAD_RATE = 0.95, 0.5


class Queue(TypedDict):
    """What is ready to be sent on a channel."""

    channel: str
    ready: int
    oldestSeconds: float


class ProviderStatus(TypedDict):
    """A provider account, with its figures of the last hour."""

    name: str
    channel: str
    status: str
    circuit: str
    successRate: float | None
    p95LatencyMs: int | None
    lastSuccessAt: str | None
    lastError: str | None


class Figures(TypedDict):
    """What the report holds of the organization itself."""

    queues: list[Queue]
    providers: list[ProviderStatus]
    configuration: list[configuration.FindingView]


class HealthReport(Figures):
    """The health report, as the API returns it."""

    status: str
    version: str
    time: str
    checks: dict[str, Check]


_cache: TtlCache[str, Figures] = TtlCache(seconds=2)

_QUEUES = f"""
SELECT channel, count(*), EXTRACT(EPOCH FROM statement_timestamp() - min(due_at))::float8
FROM {Delivery._meta.db_table}
WHERE status = 'ACCEPTED' AND channel = ANY(%s) AND priority = ANY('{{0,1}}')
  AND organization_id = %s AND due_at <= statement_timestamp()
GROUP BY channel
"""

# Rejections for the recipient's or the content's sake do not count against a provider.
_PROVIDERS = f"""
SELECT account_id, channel,
  count(*) FILTER (WHERE outcome = 'Accepted'),
  count(*) FILTER (WHERE outcome IN ('Accepted', 'Retryable', 'Misconfigured', 'Unknown')),
  percentile_disc(0.95) WITHIN GROUP (ORDER BY latency_ms) FILTER (WHERE latency_ms IS NOT NULL),
  max(started_at) FILTER (WHERE outcome = 'Accepted'),
  (array_agg(reason ORDER BY id DESC) FILTER (WHERE outcome <> 'Accepted'))[1],
  max(started_at) FILTER (WHERE outcome = 'Misconfigured')
FROM (SELECT * FROM {Attempt._meta.db_table} WHERE id >= %s AND organization_id = %s
      ORDER BY id DESC LIMIT {ATTEMPTS_LIMIT}) latest
GROUP BY account_id, channel
"""


@dataclass(frozen=True, slots=True)
class AccountOutcomes:
    """The outcomes of an account's attempts in the period."""

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


def report(organization_id: str) -> HealthReport:
    """Return the report: `down` if nothing can be accepted, `degraded` if a part fails."""
    found = checks.run()
    is_database_up = found["database"]["status"] == OK
    figures: Figures = {"queues": [], "providers": [], "configuration": []}
    if is_database_up:
        figures = _cache.get(organization_id, lambda: _figures(organization_id)) or figures
    worst = OK if all(check["status"] == OK for check in found.values()) else DEGRADED
    return {
        "status": worst if is_database_up else DOWN,
        "version": __version__,
        "time": str(iso(datetime.now(UTC))),
        "checks": found,
        **figures,
    }


def _figures(organization_id: str) -> Figures:
    """Read the figures of an organization."""
    records = _records(organization_id)
    found = configuration.findings([organization_id])
    accounts = organization_policy.of(organization_id).accounts
    failing = [
        _refused(organization_id, account)
        for account in accounts
        if records.get((account.id, account.channel), AccountOutcomes()).misconfigured
    ]
    return {
        "queues": _queues(organization_id),
        "providers": _providers(accounts, records),
        "configuration": [finding.as_json() for finding in [*found, *failing]],
    }


def _refused(organization_id: str, account: organization_policy.Account) -> configuration.Finding:
    code, text = account.provider.refusal_problem if account.provider else Provider.refusal_problem
    named = text.format(account.name)
    return configuration.Finding(organization_id, configuration.ERROR, code, named, account.id)


def _queues(organization_id: str) -> list[Queue]:
    """Count what is ready to be sent on each channel."""
    with connection.cursor() as cursor:
        cursor.execute(_QUEUES, [list(Channel), organization_id])
        waiting = {channel: (ready, oldest) for channel, ready, oldest in cursor.fetchall()}
    shown = {channel: waiting.get(channel, (0, 0.0)) for channel in Channel}
    return [
        {"channel": channel, "ready": ready, "oldestSeconds": round(oldest, 1)}
        for channel, (ready, oldest) in shown.items()
    ]


Records = dict[tuple[int | None, str], AccountOutcomes]


def _records(organization_id: str) -> Records:
    since = ids.at_least(datetime.now(UTC) - PERIOD)
    with connection.cursor() as cursor:
        cursor.execute(_PROVIDERS, [since, organization_id])
        return {(row[0], row[1]): AccountOutcomes(*row[2:]) for row in cursor.fetchall()}


def _providers(
    accounts: Sequence[organization_policy.Account], records: Records
) -> list[ProviderStatus]:
    serving = accounts or tuple(SIMULATORS.values())
    found = look([account.id for account in accounts if account.id])
    return [
        _provider(
            account,
            records.get((account.id, account.channel), AccountOutcomes()),
            found.get(account.id or 0, Availability()),
        )
        for account in serving
    ]


def _provider(
    account: organization_policy.Account, record: AccountOutcomes, available: Availability
) -> ProviderStatus:
    return {
        "name": account.name,
        "channel": account.channel,
        "status": _status(account, record),
        "circuit": available.circuit,
        "successRate": record.rate,
        "p95LatencyMs": record.p95_ms,
        "lastSuccessAt": iso(record.last_success),
        "lastError": record.last_error,
    }


def _status(account: organization_policy.Account, record: AccountOutcomes) -> str:
    if account.provider is None or record.misconfigured:
        return DOWN
    if account.draining:
        return "draining"
    if not account.active:
        return "paused"
    if record.rate is None or record.rate >= GOOD_RATE:
        return OK
    return DEGRADED if record.rate >= BAD_RATE else DOWN
