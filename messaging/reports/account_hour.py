"""The outcomes of provider accounts' attempts in the last hour, for health and for the admin."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from messaging.delivery.accounts import Availability, CircuitState, shared_availability
from messaging.domain import attention
from messaging.domain.attention import AccountFacts, AccountStatus, Problem
from messaging.models import ProviderAccount
from messaging.policy import organization_policy
from messaging.policy.organization_policy import Account
from messaging.store.reports import accounts as store
from messaging.store.reports.accounts import AccountOutcomes, OutcomeRow
from rme.core.provider import Provider

PERIOD = timedelta(hours=1)
NOTHING = AccountOutcomes()


def read_organization(organization_id: str) -> dict[tuple[int | None, str], AccountOutcomes]:
    """Read the last hour of all accounts of an organization, by account and channel; one query."""
    return store.read_organization(organization_id, _since())


def facts_of(account: Account, outcomes: AccountOutcomes, circuit: CircuitState) -> AccountFacts:
    """Return what decides whether an account sends."""
    return AccountFacts(
        name=account.name,
        is_broken=account.provider is None,
        is_active=account.active,
        is_draining=account.draining,
        is_refused=outcomes.misconfigured,
        circuit=circuit,
        accepted=outcomes.accepted,
        answered=outcomes.answered,
    )


def problem_of(account: Account, facts: AccountFacts) -> Problem | None:
    """Return the severity, code and message of an account that fails; None if it doesn't."""
    provider = account.provider or Provider
    return attention.account_problem(facts, provider.refusal_problem)


@dataclass(frozen=True, slots=True)
class AccountHour:
    """The last hour of an account."""

    circuit: CircuitState
    status: AccountStatus
    problem: Problem | None
    outcomes: AccountOutcomes

    @property
    def sentence(self) -> str:
        """Return what is wrong; empty if nothing is."""
        return self.problem[2] if self.problem else ""

    @property
    def failed(self) -> int:
        """Return how many attempts count against the provider."""
        return self.outcomes.answered - self.outcomes.accepted


def read(
    rows: Collection[ProviderAccount], attempts_limit: int = store.LATEST
) -> dict[int, AccountHour]:
    """Read the last hour of several accounts, in one query and one call to Redis.

    `attempts_limit`: the most attempts of an organization that are read, the latest ones.
    """
    available = shared_availability([row.pk for row in rows])
    if not available:
        return {}
    organizations = sorted({row.organization_id for row in rows})
    outcomes = store.read_summaries(organizations, list(available), _since(), attempts_limit)
    return {
        row.pk: _hour(row, outcomes.get(row.pk, NOTHING), available.get(row.pk, Availability()))
        for row in rows
    }


def _hour(row: ProviderAccount, outcomes: AccountOutcomes, available: Availability) -> AccountHour:
    account = organization_policy.account_of(row)
    facts = facts_of(account, outcomes, available.circuit)
    status = attention.account_status(facts)
    return AccountHour(available.circuit, status, problem_of(account, facts), outcomes)


def read_outcomes(account: ProviderAccount) -> Sequence[OutcomeRow]:
    """Read the outcomes of an account's last hour, the most frequent first; one query."""
    return store.read_outcomes(account.organization_id, account.pk, _since())


def _since() -> datetime:
    return datetime.now(UTC) - PERIOD
