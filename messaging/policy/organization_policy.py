"""What an organization has decided, read once and kept for two seconds: categories, sender
domains, provider accounts and sending rules. Every accept and every window of sends looks here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import orjson
import structlog
from django.conf import settings
from pydantic import ValidationError

from messaging import providers
from messaging.domain.channels import Channel
from messaging.domain.policy import BUILT_IN, SendingPolicy
from messaging.models import ProviderAccount
from messaging.store import policies as store
from messaging.store.policies import PolicyRows
from rme.core.cache import TtlCache
from rme.core.provider import Provider

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Account:
    """A provider account, ready to send. `id` is None for the built-in simulator."""

    id: int | None
    name: str
    channel: Channel
    provider: Provider | None
    """None where the account's settings are broken: it is never active then."""
    priority: int = 100
    weight: int = 1
    match: tuple[str, ...] = ()
    active: bool = True
    draining: bool = False
    """It takes no new deliveries; those that it has tried before, it may try again."""
    rate: int | None = None
    """Sends a second; None: no limit."""
    callback_url: str = ""
    """The URL for the provider's callbacks."""

    @property
    def platforms(self) -> frozenset[str]:
        """Return the platforms of the devices that it reaches; empty for all."""
        return self.provider.platforms if self.provider else frozenset()

    @property
    def kind(self) -> str:
        """Return the kind of its provider; empty where its settings are broken."""
        return self.provider.kind if self.provider else ""


@dataclass(frozen=True, slots=True)
class Policy(SendingPolicy):
    """What one organization has decided, and its accounts."""

    accounts: tuple[Account, ...]
    simulated: bool = False
    """The simulator serves channels without an account, as in the demo organization."""


@lru_cache(maxsize=1024)
def _provider(kind: str, credentials: str) -> Provider:
    """Return the provider of an account's settings, which equal ones share. Raises ValueError."""
    provider = providers.REGISTRY.get(kind)
    if provider is None:
        raise ValueError(f"no provider {kind}")
    return provider(provider.Settings.model_validate(orjson.loads(credentials or "{}")))


def _provider_of(row: ProviderAccount) -> Provider | None:
    """Return an account's provider; None if its settings are invalid, which is logged."""
    try:
        return _provider(row.kind, row.credentials)
    except ValueError as error:  # UnreadableSecret is one, too
        # The settings hold secrets: only the names of the invalid fields are logged.
        fields = [p["loc"] for p in error.errors()] if isinstance(error, ValidationError) else []
        log.error("account.broken", account_id=row.pk, fields=fields)  # noqa: TRY400 (see above)
        return None


def account_of(row: ProviderAccount) -> Account:
    """Return the account of a row, ready to send."""
    provider = _provider_of(row)
    return Account(
        id=row.pk,
        name=row.name,
        channel=Channel(row.channel),
        provider=provider,
        priority=row.priority,
        weight=row.weight,
        match=tuple(row.match),
        active=row.state == ProviderAccount.State.ACTIVE and provider is not None,
        draining=row.state == ProviderAccount.State.DRAINING and provider is not None,
        rate=row.rate,
        callback_url=f"{settings.BASE_URL}/hooks/{row.public_id}",
    )


def _read(organization_ids: Sequence[str]) -> dict[str, Policy]:
    """Read the policies of organizations, by one statement however many there are."""
    return {
        organization_id: _policy(rows)
        for organization_id, rows in store.read(organization_ids).items()
    }


def _policy(rows: PolicyRows) -> Policy:
    return Policy(
        categories={**BUILT_IN, **{rules.name: rules for rules in rows.categories}},
        domains={domain.domain: domain for domain in rows.domains},
        default_domain=next(iter(rows.domains), None),
        accounts=tuple(map(account_of, rows.accounts)),
        sending=rows.sending,
        simulated=rows.simulated,
    )


_policies: TtlCache[str, Policy] = TtlCache(seconds=2)


def of(organization_id: str) -> Policy:
    """Return an organization's policy: one query, at most every two seconds and process."""
    return of_many([organization_id])[organization_id]


def of_many(organization_ids: Sequence[str]) -> dict[str, Policy]:
    """Return the policies of organizations: one query for those that are not cached."""
    return _policies.get_many(organization_ids, _read)


def forget(organization_id: str) -> None:
    """Remove the organization's policy from the cache, since the admin changed it."""
    _policies.forget(organization_id)
