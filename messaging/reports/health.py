"""The health report of an organization: checks of the deployment, and the organization's figures.

The figures are of the organization alone. Their cost is bounded: they are read at most every two
seconds, over the attempts of an hour.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from messaging.delivery.accounts import Availability, serving, shared_availability
from messaging.domain.channels import Channel
from messaging.policy import organization_policy
from messaging.reports import account_hour, checks, configuration
from messaging.reports.backlog import backlog
from messaging.reports.checks import DEGRADED, DOWN, OK, Check
from messaging.store.reports.accounts import AccountOutcomes
from rme import __version__
from rme.core.cache import TtlCache
from rme.core.provider import Provider

GOOD_RATE, BAD_RATE = 0.95, 0.5


@dataclass(frozen=True, slots=True)
class Queue:
    """What is ready to be sent on a channel."""

    channel: str
    ready: int
    oldest_seconds: float


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """A provider account, with its figures of the last hour."""

    name: str
    channel: str
    status: str
    circuit: str
    success_rate: float | None
    p95_latency_ms: int | None
    last_success_at: datetime | None
    last_error: str | None


@dataclass(frozen=True, slots=True)
class OrganizationHealth:
    """What the report holds of the organization itself."""

    organization_id: str
    queues: Sequence[Queue] = ()
    providers: Sequence[ProviderStatus] = ()
    findings: Sequence[configuration.Finding] = ()


@dataclass(frozen=True, slots=True)
class HealthReport:
    """The health report."""

    status: str
    version: str
    time: datetime
    checks: Mapping[str, Check]
    queues: Sequence[Queue]
    providers: Sequence[ProviderStatus]
    configuration: Sequence[configuration.Finding]


_cache: TtlCache[str, OrganizationHealth] = TtlCache(seconds=2)


def report(organization_id: str) -> HealthReport:
    """Return the report: `down` if nothing can be accepted, `degraded` if a part fails."""
    results = checks.run()
    is_database_up = results["database"].status == OK
    organization_health = OrganizationHealth(organization_id)
    if is_database_up:
        organization_health = of_organization(organization_id)
    worst = OK if all(check.status == OK for check in results.values()) else DEGRADED
    return HealthReport(
        status=worst if is_database_up else DOWN,
        version=__version__,
        time=datetime.now(UTC),
        checks=results,
        queues=organization_health.queues,
        providers=organization_health.providers,
        configuration=organization_health.findings,
    )


def of_organization(organization_id: str) -> OrganizationHealth:
    """Return the organization's part, at most two seconds old."""
    health = _cache.get(organization_id, lambda: _read(organization_id))
    return health or OrganizationHealth(organization_id)


def _read(organization_id: str) -> OrganizationHealth:
    records = account_hour.read_organization(organization_id)
    problems = configuration.findings([organization_id])
    accounts = serving(organization_policy.of(organization_id))
    failing = [
        _refused(organization_id, account)
        for account in accounts
        if records.get((account.id, account.channel), AccountOutcomes()).misconfigured
    ]
    return OrganizationHealth(
        organization_id,
        queues=_queues(organization_id),
        providers=_providers(accounts, records),
        findings=[*problems, *failing],
    )


def _refused(organization_id: str, account: organization_policy.Account) -> configuration.Finding:
    code, text = account.provider.refusal_problem if account.provider else Provider.refusal_problem
    message = text.format(account.name)
    return configuration.Finding(organization_id, configuration.ERROR, code, message, account.id)


def _queues(organization_id: str) -> list[Queue]:
    """Count what is ready to be sent on each channel."""
    rows = backlog("channel", organization_id=organization_id)
    backlogs = {channel: (ready, age.total_seconds()) for channel, ready, age in rows}
    by_channel = {channel: backlogs.get(channel, (0, 0.0)) for channel in Channel}
    return [
        Queue(channel, ready, round(oldest, 1)) for channel, (ready, oldest) in by_channel.items()
    ]


def _providers(
    accounts: Sequence[organization_policy.Account],
    records: Mapping[tuple[int | None, str], AccountOutcomes],
) -> list[ProviderStatus]:
    availability = shared_availability([account.id for account in accounts if account.id])
    return [
        _provider(
            account,
            records.get((account.id, account.channel), AccountOutcomes()),
            availability.get(account.id or 0, Availability()),
        )
        for account in accounts
    ]


def _provider(
    account: organization_policy.Account, record: AccountOutcomes, available: Availability
) -> ProviderStatus:
    return ProviderStatus(
        name=account.name,
        channel=account.channel,
        status=_status(account, record),
        circuit=available.circuit,
        success_rate=record.rate,
        p95_latency_ms=record.p95_ms,
        last_success_at=record.last_success,
        last_error=record.last_error,
    )


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
