"""The outcomes of provider accounts' attempts in the last hour, for health and for the admin."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from messaging.delivery.accounts import CircuitState, shared_availability
from messaging.models import ProviderAccount
from messaging.store.reports import accounts as store
from messaging.store.reports.accounts import AccountOutcomes, OutcomeRow

PERIOD = timedelta(hours=1)


def read_organization(organization_id: str) -> dict[tuple[int | None, str], AccountOutcomes]:
    """Read the last hour of all accounts of an organization, by account and channel; one query."""
    return store.read_organization(organization_id, _since())


@dataclass(frozen=True, slots=True)
class AccountHour:
    """The last hour of an account: the most frequent outcomes first."""

    circuit: CircuitState
    rows: Sequence[OutcomeRow]


def read(account: ProviderAccount) -> AccountHour:
    """Read an account's last hour, in one query."""
    rows = store.read_outcomes(account.organization_id, account.pk, _since())
    return AccountHour(shared_availability([account.pk])[account.pk].circuit, rows)


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
    counts = store.read_summaries(organizations, list(available), _since())
    return {
        pk: AccountSummary(account.circuit, *counts.get(pk, ()))
        for pk, account in available.items()
    }


def _since() -> datetime:
    return datetime.now(UTC) - PERIOD
