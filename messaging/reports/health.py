"""The health report of an organization: checks of the deployment, and the organization's figures.

The figures are of the organization alone. Their cost is bounded: they are read at most every two
seconds, over the attempts of an hour.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from messaging.delivery.accounts import Availability, serving, shared_availability
from messaging.domain import attention
from messaging.domain.attention import AccountStatus, BacklogFacts, Finding
from messaging.domain.channels import Channel
from messaging.policy import organization_policy
from messaging.reports import account_hour, checks, configuration, open_tasks
from messaging.reports.backlog import read_backlogs
from messaging.reports.checks import DEGRADED, DOWN, OK, Check
from messaging.store.reports.accounts import AccountOutcomes
from rme import __version__
from rme.core.cache import TtlCache


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
    status: AccountStatus
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
    findings: Sequence[Finding] = ()


@dataclass(frozen=True, slots=True)
class HealthReport:
    """The health report."""

    status: str
    version: str
    time: datetime
    checks: Mapping[str, Check]
    queues: Sequence[Queue]
    providers: Sequence[ProviderStatus]
    configuration: Sequence[Finding]


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
    accounts = serving(organization_policy.of(organization_id))
    backlogs = read_backlogs(organization_id)
    return OrganizationHealth(
        organization_id,
        queues=_queues(backlogs),
        providers=_providers(accounts, records),
        findings=attention.by_harm(
            [
                *configuration.findings(
                    [organization_id], {account_id: row for (account_id, _), row in records.items()}
                ),
                *_late_backlogs(organization_id, backlogs),
                *open_tasks.findings([organization_id]),
            ]
        ),
    )


def _late_backlogs(organization_id: str, backlogs: Sequence[BacklogFacts]) -> list[Finding]:
    problems = map(attention.backlog_problem, backlogs)
    return [Finding(organization_id, *problem) for problem in problems if problem]


def _queues(backlogs: Sequence[BacklogFacts]) -> list[Queue]:
    """Return what is ready to be sent on each channel."""
    queues = []
    for channel in Channel:
        of_channel = [each for each in backlogs if each.channel is channel]
        age = max((each.age.total_seconds() for each in of_channel), default=0.0)
        queues.append(Queue(channel, sum(each.ready for each in of_channel), round(age, 1)))
    return queues


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
        status=attention.account_status(account_hour.facts_of(account, record, available.circuit)),
        circuit=available.circuit,
        success_rate=record.rate,
        p95_latency_ms=record.p95_ms,
        last_success_at=record.last_success,
        last_error=record.last_error,
    )
