"""What an organization has decided, read once and kept for two seconds: categories, sender
domains, provider accounts and sending rules. Every accept and every window of sends looks here.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeVar

import orjson
import structlog
from django.conf import settings
from pydantic import ValidationError

from messaging import providers
from messaging.models import Category, ProviderAccount, SenderDomain, SendingRules
from rme.core.cache import TtlCache
from rme.core.channels import Channel
from rme.core.provider import Provider
from rme.tenants.models import Organization

log = structlog.get_logger(__name__)

R = TypeVar("R", Category, SenderDomain, ProviderAccount)

TRANSACTIONAL = "TRANSACTIONAL"
MARKETING = "MARKETING"
DEFAULT_CHANNEL_ORDER = (Channel.PUSH, Channel.EMAIL, Channel.SMS)


@dataclass(frozen=True, slots=True)
class CategoryRules:
    """A category as sending needs it."""

    name: str
    opt_in: bool
    resend_unknown: bool
    expires_after: timedelta
    cap: tuple[int, timedelta] | None = None
    channel_order: tuple[Channel, ...] = DEFAULT_CHANNEL_ORDER

    @property
    def priority(self) -> int:
        """Return 0 for TRANSACTIONAL, which goes before 1, all else."""
        return 0 if self.name == TRANSACTIONAL else 1


BUILT_IN = {
    TRANSACTIONAL: CategoryRules(TRANSACTIONAL, False, True, timedelta(hours=24)),
    MARKETING: CategoryRules(MARKETING, True, False, timedelta(hours=4)),
}
"""The categories that every organization has, unless a row of the same name replaces them."""


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


@dataclass(frozen=True, slots=True)
class Domain:
    """A verified sender domain."""

    domain: str
    local_part: str
    name: str


@dataclass(frozen=True, slots=True)
class SendingRulesRecord:
    """How an organization sends: quiet hours by channel, and ceilings on what is accepted."""

    quiet_hours: Mapping[str, Mapping[str, str]]
    quiet_transactional: bool
    schedule_grace: timedelta
    sends_per_second: int | None
    sends_per_day: int
    double_opt_in: bool
    track_opens: bool
    track_clicks: bool


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
        found = self.categories.get(category)
        return found or replace(self.categories[MARKETING], name=category)

    def quiet(self, channel: str, rules: CategoryRules) -> Mapping[str, str] | None:
        """Return the quiet hours (`from`, `until`: HH:MM) of a category on a channel."""
        if rules.name == TRANSACTIONAL and not self.sending.quiet_transactional:
            return None
        return self.sending.quiet_hours.get(channel)


def _category(row: Category) -> CategoryRules:
    return CategoryRules(
        name=row.name,
        opt_in=row.regime == Category.Regime.OPT_IN,
        resend_unknown=row.on_unknown == Category.OnUnknown.RESEND,
        expires_after=timedelta(seconds=row.expires_after),
        cap=(row.cap_count, timedelta(seconds=row.cap_window)) if row.cap_count else None,
        channel_order=tuple(Channel(name) for name in row.channel_order) or DEFAULT_CHANNEL_ORDER,
    )


def _provider(row: ProviderAccount) -> Provider | None:
    """Return an account's provider; None if its settings are invalid, which is logged."""
    kind = providers.REGISTRY.get(row.kind)
    try:
        if kind is None:
            raise ValueError(f"no provider {row.kind}")
        return kind(kind.Settings.model_validate(orjson.loads(row.credentials or "{}")))
    except (ValidationError, ValueError) as error:
        # The settings hold secrets: only the names of the invalid fields are logged.
        fields = [p["loc"] for p in error.errors()] if isinstance(error, ValidationError) else []
        log.error("account.broken", account_id=row.pk, fields=fields)  # noqa: TRY400 (see above)
        return None


def account_of(row: ProviderAccount) -> Account:
    """Return the account of a row, ready to send."""
    provider = _provider(row)
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
    )


def _read(organization_ids: Sequence[str]) -> dict[str, Policy]:
    """Read the policies of organizations, by four queries however many there are."""
    of_these = {"organization_id__in": organization_ids}
    categories = _by_organization(Category.objects.filter(**of_these))
    domains = _by_organization(
        SenderDomain.objects.filter(**of_these, verified_at__isnull=False).order_by(
            "-is_default", "id"
        )
    )
    accounts = _by_organization(ProviderAccount.objects.filter(**of_these).order_by("priority"))
    organizations = Organization.objects.select_related("sending_rules").in_bulk(organization_ids)
    return {
        each: _policy(organizations.get(each), categories[each], domains[each], accounts[each])
        for each in organization_ids
    }


def _by_organization(rows: Iterable[R]) -> defaultdict[str, list[R]]:
    found: defaultdict[str, list[R]] = defaultdict(list)
    for row in rows:
        found[row.organization_id].append(row)
    return found


def _policy(
    organization: Organization | None,
    categories: Sequence[Category],
    verified: Sequence[SenderDomain],
    accounts: Sequence[ProviderAccount],
) -> Policy:
    domains = [Domain(row.domain, row.local_part, row.name) for row in verified]
    return Policy(
        categories={**BUILT_IN, **{row.name: _category(row) for row in categories}},
        domains={domain.domain: domain for domain in domains},
        default_domain=domains[0] if domains else None,
        accounts=tuple(account_of(row) for row in accounts),
        sending=_sending(getattr(organization, "sending_rules", None) or SendingRules()),
        simulated=organization is not None and organization.simulator,
    )


_policies: TtlCache[str, Policy] = TtlCache(seconds=2)


def of(organization_id: str) -> Policy:
    """Return an organization's policy: four queries, at most every two seconds and process."""
    return of_many([organization_id])[organization_id]


def of_many(organization_ids: Sequence[str]) -> dict[str, Policy]:
    """Return the policies of organizations: four queries for all that are not cached."""
    return _policies.get_many(organization_ids, _read)


def forget(organization_id: str) -> None:
    """Remove the organization's policy from the cache, since the admin changed it."""
    _policies.forget(organization_id)
