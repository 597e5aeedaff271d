"""Findings: what is wrong in an organization's configuration, and must be set right by a person.

The health report and the admin's first page show them, for one organization or for many.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.contrib.postgres.aggregates import BoolOr
from django.db.models import F, Func, Q, Value
from django.db.models.functions import Now

from messaging import providers
from messaging.consent.privacy import requests
from messaging.domain.channels import Channel
from messaging.models import (
    ProviderAccount,
    Template,
    TemplateVersion,
    WebhookEndpoint,
)
from messaging.policy import organization_policy
from messaging.store.reports import backlogs
from messaging.webhooks.endpoints import ON_PURPOSE
from push import active_devices
from rme.core.db import clock
from rme.tenants.models import Organization
from rme.tenants.oauth.makers import unbacked_programs

TEMPLATES_LIMIT = 50

FAILING_FOR = timedelta(hours=1)
"""An endpoint that has been failing for less time is no finding."""

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to set right. `error`: sends fail or wait because of it."""

    organization_id: str
    severity: str
    code: str
    message: str
    row_id: int | None = None
    """The id of the account, sender domain or endpoint."""


def findings(organization_ids: Sequence[str]) -> list[Finding]:
    """Return the findings of organizations, in ten statements however many they are."""
    accounts: dict[str, list[ProviderAccount]] = {each: [] for each in organization_ids}
    for row in ProviderAccount.objects.filter(organization_id__in=accounts).order_by("id"):
        accounts[row.organization_id].append(row)
    domains = _read_domains(organization_ids)
    return [
        *_broken_accounts(accounts),
        *_unserved_channels(accounts, {row.organization_id for row in domains if row.simulator}),
        *_vapid_key(accounts),
        *_sender_domains(organization_ids, domains),
        *_template_languages(organization_ids),
        *_manual_review(organization_ids),
        *_webhook_endpoints(organization_ids),
        *_privacy_requests(organization_ids),
        *_programs(organization_ids),
    ]


Accounts = Mapping[str, Sequence[ProviderAccount]]


def _broken_accounts(accounts: Accounts) -> list[Finding]:
    text = "the settings of {} are broken."
    return [
        Finding(organization_id, ERROR, "ACCOUNT_BROKEN", text.format(row.name), row.pk)
        for organization_id, rows in accounts.items()
        for row in rows
        if organization_policy.account_of(row).provider is None
    ]


def _unserved_channels(accounts: Accounts, simulated: Collection[str]) -> list[Finding]:
    """Find channels without an active provider. `simulated`: organizations with the simulator."""
    problems = []
    for organization_id, rows in accounts.items():
        for channel in Channel:
            states = {row.state for row in rows if row.channel == channel}
            states.discard(ProviderAccount.State.DRAFT)
            if not states and organization_id in simulated:  # as in routing
                text = f"no provider account for {channel}: the simulator takes what is sent."
                problems.append(Finding(organization_id, WARNING, "SIMULATOR_SERVES", text))
            elif not states:
                text = f"no provider account for {channel}: what is sent there is refused."
                problems.append(Finding(organization_id, ERROR, "NO_PROVIDER", text))
            elif ProviderAccount.State.ACTIVE not in states:
                text = f"no provider account for {channel} is active."
                problems.append(Finding(organization_id, ERROR, "NO_ACTIVE_PROVIDER", text))
    return problems


def _vapid_key(accounts: Accounts) -> list[Finding]:
    """Find organizations that push to browsers while the VAPID key depends on SECRET_KEY."""
    if settings.VAPID_KEY_IS_SET:
        return []
    with_devices = active_devices.with_browsers(list(accounts))
    text = (
        "VAPID_PRIVATE_KEY is not set: the key is made of SECRET_KEY, and all browsers are lost "
        "when that changes."
    )
    return [
        Finding(organization_id, WARNING, "VAPID_KEY_MISSING", text)
        for organization_id, rows in accounts.items()
        if organization_id in with_devices or any(_reaches_browsers(row) for row in rows)
    ]


def _reaches_browsers(row: ProviderAccount) -> bool:
    kind = providers.REGISTRY.get(row.kind)
    return kind is not None and "WEB" in kind.platforms


class _DomainRow(NamedTuple):
    """A sender domain with its organization; an organization without one has a row of its own."""

    organization_id: str
    simulator: bool
    id: int | None
    domain: str | None
    verified_at: datetime | None


def _read_domains(organization_ids: Sequence[str]) -> list[_DomainRow]:
    rows = Organization.objects.filter(pk__in=organization_ids).order_by("sender_domains__id")
    names = ("id", "domain", "verified_at")
    joined = rows.values_list("pk", "simulator", *(f"sender_domains__{name}" for name in names))
    return [_DomainRow(*row) for row in joined]


def _sender_domains(organization_ids: Sequence[str], rows: Sequence[_DomainRow]) -> list[Finding]:
    verified = {row.organization_id for row in rows if row.verified_at}
    problem = "no verified sender domain: email cannot be sent."
    text = "the sender domain {} is not verified: nothing can be sent from it."
    return [
        *(
            Finding(each, ERROR, "NO_SENDER_DOMAIN", problem)
            for each in organization_ids
            if each not in verified
        ),
        *(
            Finding(
                row.organization_id,
                WARNING,
                "SENDER_DOMAIN_UNVERIFIED",
                text.format(row.domain),
                row.id,
            )
            for row in rows
            if row.id and not row.verified_at
        ),
    ]


def _template_languages(organization_ids: Sequence[str]) -> list[Finding]:
    """Find active templates without a version in the organization's own language."""
    default = F("organization__language")
    short = Func(default, Value("_"), Value(1), function="split_part")
    serves = Q(language=default) | Q(organization__locale_fallback=True, language=short)
    rows = (
        Template.objects.filter(
            organization_id__in=organization_ids, versions__state=TemplateVersion.State.ACTIVE
        )
        .values_list("organization_id", "name", "channel", "organization__language")
        .annotate(served=BoolOr(serves))
        .filter(served=False)
        .order_by("organization_id", "name", "channel")[:TEMPLATES_LIMIT]
    )
    text = "the template {} has no active version for {} in {}, the organization's language."
    return [
        Finding(owner, WARNING, "TEMPLATE_WITHOUT_LANGUAGE", text.format(name, channel, language))
        for owner, name, channel, language, _ in rows
    ]


def _manual_review(organization_ids: Sequence[str]) -> list[Finding]:
    """Find organizations with deliveries in manual review."""
    counts = backlogs.count_held(organization_ids)
    text = "{} messages are on hold, their outcome unknown: send them again, or give them up."
    return [
        Finding(each, WARNING, "HELD_UNKNOWN", text.format(_at_most(counts[each])))
        for each in organization_ids
        if counts[each]
    ]


def _at_most(count: int) -> str:
    return f"{count:,} or more" if count == backlogs.HELD_LIMIT else str(count)


def _webhook_endpoints(organization_ids: Sequence[str]) -> list[Finding]:
    """Find webhook endpoints that were disabled after failures, or are failing."""
    disabled_or_failing = Q(enabled=False) | Q(failing_since__lte=Now() - FAILING_FOR)
    rows = WebhookEndpoint.objects.filter(disabled_or_failing, organization_id__in=organization_ids)
    off, failing = "the webhook {} is disabled: {}", "the webhook {} has been failing for {} hours."
    problems = []
    for row in rows.order_by("id"):
        if row.enabled and row.failing_since:
            hours = int((clock.now() - row.failing_since) / timedelta(hours=1))
            code, text = "WEBHOOK_FAILING", failing.format(row, hours)
        elif row.disabled_reason in ON_PURPOSE:
            continue
        else:
            code, text = "WEBHOOK_DISABLED", off.format(row, row.disabled_reason)
        problems.append(Finding(row.organization_id, WARNING, code, text, row.pk))
    return problems


def _programs(organization_ids: Sequence[str]) -> list[Finding]:
    """Find applications and keys that may do more than their makers."""
    text = "{} may do more than its maker: confirm it, or remove permissions."
    return [
        Finding(each.organization_id, WARNING, "PROGRAM_UNCONFIRMED", text.format(each.name))
        for each in unbacked_programs(organization_ids)
    ]


def _privacy_requests(organization_ids: Sequence[str]) -> list[Finding]:
    """Find organizations that have not answered requests for a data export or erasure in time."""
    counts = requests.overdue(organization_ids)
    text = "requests for a data export or an erasure that are overdue: {}."
    return [
        Finding(each, WARNING, "PRIVACY_REQUEST_OVERDUE", text.format(counts[each]))
        for each in organization_ids
        if each in counts
    ]
