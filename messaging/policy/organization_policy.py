"""What an organization has decided, read once and kept for two seconds: categories, sender
domains, provider accounts and sending rules. Every accept and every window of sends looks here.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, lru_cache
from typing import Any, NamedTuple

import orjson
import structlog
from django.conf import settings
from pydantic import ValidationError

from messaging import providers
from messaging.domain.channels import Channel
from messaging.domain.policy import (
    BUILT_IN,
    DEFAULT_CHANNEL_ORDER,
    CategoryRules,
    Domain,
    FrequencyCap,
    SendingRulesRecord,
    quiet_hours,
    rules_of,
)
from messaging.models import Category, ProviderAccount, SenderDomain, SendingRules
from rme.core.cache import TtlCache
from rme.core.db import sql
from rme.core.db.encrypted_fields import Ciphertext
from rme.core.provider import Provider
from rme.tenants.models import Organization

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
class Policy:
    """What one organization has decided."""

    categories: Mapping[str, CategoryRules]
    domains: Mapping[str, Domain]
    default_domain: Domain | None
    accounts: tuple[Account, ...]
    sending: SendingRulesRecord
    simulated: bool = False
    """The simulator serves channels without an account, as in the demo organization."""

    def rules(self, category: str) -> CategoryRules:
        """Return a category's rules. A category that was deleted needs consent, like MARKETING."""
        return rules_of(self.categories, category)

    def quiet(self, channel: str, rules: CategoryRules) -> Mapping[str, str] | None:
        """Return the quiet hours (`from`, `until`: HH:MM) of a category on a channel."""
        return quiet_hours(self.sending, channel, rules)


def _category(row: Category) -> CategoryRules:
    return CategoryRules(
        name=row.name,
        opt_in=row.regime == Category.Regime.OPT_IN,
        resend_unknown=row.on_unknown == Category.OnUnknown.RESEND,
        expires_after=timedelta(seconds=row.expires_after),
        cap=(
            FrequencyCap(row.cap_count, timedelta(seconds=row.cap_window))
            if row.cap_count
            else None
        ),
        channel_order=tuple(Channel(name) for name in row.channel_order) or DEFAULT_CHANNEL_ORDER,
    )


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


@cache
def _default_sending() -> SendingRulesRecord:
    return _sending(SendingRules())


def _sending(row: SendingRules) -> SendingRulesRecord:
    return SendingRulesRecord(
        quiet_hours=row.quiet_hours,
        quiet_transactional=row.quiet_transactional,
        schedule_grace=timedelta(seconds=row.schedule_grace),
        sends_per_second=row.sends_per_second,
        sends_per_day=row.sends_per_day,
        double_opt_in=row.double_opt_in,
        track_opens=row.track_opens,
        track_clicks=row.track_clicks,
        review_templates=row.review_templates,
    )


class _Query(NamedTuple):
    """What is read of a table for the policies of organizations."""

    model: type[Category | SenderDomain | ProviderAccount | SendingRules]
    columns: Sequence[str]
    tail: str = ""

    def step(self, organization_ids: Sequence[str]) -> sql.Step:
        """Return the query of the organizations' rows."""
        text = (
            f"SELECT organization_id, {', '.join(self.columns)} "
            f"FROM {self.model._meta.db_table} "
            f"WHERE organization_id = ANY(%s::text[]) {self.tail}"
        )
        return sql.Step(text, [sql.array(organization_ids)])

    def by_organization(self, rows: sql.Rows) -> defaultdict[str, list[Any]]:
        """Return the rows that were read, as instances of the model."""
        rows_by_organization: defaultdict[str, list[Any]] = defaultdict(list)
        for organization_id, *values in rows:
            row = self.model(**dict(zip(self.columns, values, strict=True)))
            rows_by_organization[organization_id].append(row)
        return rows_by_organization


_QUERIES = (
    _Query(
        Category,
        (
            "name",
            "regime",
            "on_unknown",
            "expires_after",
            "cap_count",
            "cap_window",
            "channel_order",
        ),
    ),
    _Query(
        SenderDomain,
        ("domain", "local_part", "name"),
        "AND verified_at IS NOT NULL ORDER BY is_default DESC, id",
    ),
    _Query(
        ProviderAccount,
        (
            "id",
            "public_id",
            "name",
            "kind",
            "channel",
            "priority",
            "weight",
            "match",
            "rate",
            "state",
            "credentials",
        ),
        # What is not active yet takes no part: no message waits for it.
        f"AND state <> '{ProviderAccount.State.DRAFT}' ORDER BY priority, id",
    ),
    _Query(
        SendingRules,
        (
            "quiet_hours",
            "quiet_transactional",
            "schedule_grace",
            "sends_per_second",
            "sends_per_day",
            "double_opt_in",
            "track_opens",
            "track_clicks",
            "review_templates",
        ),
    ),
)


_SIMULATED = (
    f"SELECT id FROM {Organization._meta.db_table} WHERE id = ANY(%s::text[]) AND simulator"
)


def _read(organization_ids: Sequence[str]) -> dict[str, Policy]:
    """Read the policies of organizations, by one statement however many there are.

    The ORM takes longer to build four queries than all else that an organization costs which has
    only a few deliveries in a claim.
    """
    steps = [query.step(organization_ids) for query in _QUERIES]
    *answers, simulated = sql.read([*steps, sql.Step(_SIMULATED, [sql.array(organization_ids)])])
    with_simulator = {organization_id for (organization_id,) in simulated}
    categories, domains, accounts, rules = (
        query.by_organization(rows) for query, rows in zip(_QUERIES, answers, strict=True)
    )
    for rows in accounts.values():
        for row in rows:
            row.credentials = Ciphertext(row.credentials)
    return {
        each: _policy(
            categories[each], domains[each], accounts[each], rules[each], each in with_simulator
        )
        for each in organization_ids
    }


def _policy(
    categories: Sequence[Category],
    verified: Sequence[SenderDomain],
    accounts: Sequence[ProviderAccount],
    rules: Sequence[SendingRules],
    simulated: bool,
) -> Policy:
    domains = [Domain(row.domain, row.local_part, row.name) for row in verified]
    return Policy(
        categories={**BUILT_IN, **{row.name: _category(row) for row in categories}},
        domains={domain.domain: domain for domain in domains},
        default_domain=domains[0] if domains else None,
        accounts=tuple(account_of(row) for row in accounts),
        sending=_sending(rules[0]) if rules else _default_sending(),
        simulated=simulated,
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
