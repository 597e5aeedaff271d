"""Findings: what is wrong in an organization's configuration, and must be set right by a person.

The health report and the admin's first page show them, for one organization or for many.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from django.conf import settings
from django.contrib.postgres.aggregates import BoolOr
from django.db.models import F, Func, Q, QuerySet, Value

from messaging import providers
from messaging.consent.privacy import requests
from messaging.delivery.accounts import Availability, shared_availability
from messaging.domain import attention
from messaging.domain.attention import EndpointFacts, Finding, Problem, Severity
from messaging.domain.channels import Channel
from messaging.domain.sentences import counted, sentence
from messaging.models import (
    ProviderAccount,
    Template,
    TemplateVersion,
    WebhookEndpoint,
)
from messaging.policy import organization_policy
from messaging.reports import account_hour
from messaging.store.reports import backlogs
from messaging.store.reports.accounts import AccountOutcomes
from messaging.webhooks.endpoints import ON_PURPOSE
from push import active_devices
from rme.core.db import clock
from rme.tenants.models import Organization
from rme.tenants.oauth.makers import unbacked_programs

TEMPLATES_LIMIT = 50

ERROR, WARNING = Severity.ERROR, Severity.WARNING


def findings(
    organization_ids: Sequence[str], outcomes: Mapping[int | None, AccountOutcomes] | None = None
) -> list[Finding]:
    """Return the findings of organizations, in ten statements however many they are, and one more
    if a webhook fails. `outcomes` has the last hour of accounts, where the caller has read it.
    """
    accounts: dict[str, list[ProviderAccount]] = {each: [] for each in organization_ids}
    for row in ProviderAccount.objects.filter(organization_id__in=accounts).order_by("id"):
        accounts[row.organization_id].append(row)
    domains = _read_domains(organization_ids)
    return [
        *_failing_accounts(accounts, outcomes or {}),
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


def _failing_accounts(
    accounts: Accounts, outcomes: Mapping[int | None, AccountOutcomes]
) -> list[Finding]:
    """Find accounts that don't send, or whose provider accepts few of their attempts."""
    circuits = shared_availability([row.pk for rows in accounts.values() for row in rows])
    problems = []
    for organization_id, rows in accounts.items():
        for row in rows:
            account = organization_policy.account_of(row)
            facts = account_hour.facts_of(
                account,
                outcomes.get(row.pk, account_hour.NOTHING),
                circuits.get(row.pk, Availability()).circuit,
            )
            if problem := account_hour.problem_of(account, facts):
                problems.append(Finding(organization_id, *problem, row.pk))
    return problems


def _unserved_channels(accounts: Accounts, simulated: Collection[str]) -> list[Finding]:
    """Find channels without an active provider. `simulated`: organizations with the simulator."""
    problems = []
    for organization_id, rows in accounts.items():
        for channel in Channel:
            names = {"channel": channel.label, "noun": channel.noun}
            states = {row.state for row in rows if row.channel == channel}
            states.discard(ProviderAccount.State.DRAFT)
            if not states and organization_id in simulated:  # as in routing
                text = sentence(
                    "%(channel)s isn't delivered: there is no %(noun)s provider, so the simulator "
                    "receives it.",
                    **names,
                )
                problems.append(Finding(organization_id, WARNING, "SIMULATOR_SERVES", text))
            elif not states:
                text = sentence(
                    "%(channel)s can't be sent: there is no %(noun)s provider.", **names
                )
                problems.append(Finding(organization_id, ERROR, "NO_PROVIDER", text))
            elif ProviderAccount.State.ACTIVE not in states:
                text = sentence("%(channel)s waits: no %(noun)s provider is active.", **names)
                problems.append(Finding(organization_id, ERROR, "NO_ACTIVE_PROVIDER", text))
    return problems


def _vapid_key(accounts: Accounts) -> list[Finding]:
    """Find organizations that push to browsers while the VAPID key depends on SECRET_KEY."""
    if settings.VAPID_KEY_IS_SET:
        return []
    with_devices = active_devices.with_browsers(list(accounts))
    text = sentence(
        "VAPID_PRIVATE_KEY isn't set. rme makes the key from SECRET_KEY, so all browsers are lost "
        "when you change it."
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
    problem = sentence("Email can't be sent: no sender domain is verified.")
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
                sentence(
                    "The sender domain %(domain)s isn't verified, so nothing can be sent from it.",
                    domain=row.domain,
                ),
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
    return [
        Finding(
            owner,
            WARNING,
            "TEMPLATE_WITHOUT_LANGUAGE",
            sentence(
                "The %(channel)s template %(name)s isn't published in %(language)s, the "
                "organization's language.",
                channel=Channel(channel).noun,
                name=name,
                language=language,
            ),
        )
        for owner, name, channel, language, _ in rows
    ]


def _manual_review(organization_ids: Sequence[str]) -> list[Finding]:
    """Find organizations with deliveries in manual review."""
    counts = backlogs.count_held(organization_ids)
    return [
        Finding(each, WARNING, "HELD_UNKNOWN", _held(counts[each]))
        for each in organization_ids
        if counts[each]
    ]


def _held(count: int) -> str:
    if count == backlogs.HELD_LIMIT:
        return sentence(
            "%(count)s or more messages have an unknown outcome. Review them.", count=count
        )
    return counted(
        "%(count)s message has an unknown outcome. Review it.",
        "%(count)s messages have an unknown outcome. Review them.",
        count,
    )


def _webhook_endpoints(organization_ids: Sequence[str]) -> list[Finding]:
    """Find webhook endpoints that get no events; another statement if there are any."""
    rows = troubled_endpoints().filter(organization_id__in=organization_ids)
    waiting = backlogs.count_waiting_events([row.pk for row in rows if row.enabled])
    return [
        Finding(row.organization_id, *problem, row.pk)
        for row, problem in endpoint_problems(rows, waiting)
    ]


def troubled_endpoints() -> QuerySet[WebhookEndpoint]:
    """Return the webhook endpoints that were disabled after failures, or whose last call failed."""
    disabled_or_failing = Q(enabled=False) | Q(failing_since__isnull=False)
    rows = WebhookEndpoint.objects.filter(disabled_or_failing).order_by("id")
    return rows.exclude(disabled_reason__in=ON_PURPOSE, enabled=False)


def endpoint_problems(
    rows: Iterable[WebhookEndpoint], waiting: Mapping[int, int]
) -> list[tuple[WebhookEndpoint, Problem]]:
    """Return the endpoints that need attention; `waiting` has the events that wait for each."""
    now = clock.now()
    problems = []
    for row in rows:
        facts = EndpointFacts(
            name=str(row),
            failing_for=now - row.failing_since if row.failing_since else None,
            waiting=waiting.get(row.pk, 0),
            waiting_limit=backlogs.WAITING_LIMIT,
            disabled_because="" if row.enabled else row.disabled_reason or _FAILED,
        )
        if problem := attention.endpoint_problem(facts):
            problems.append((row, problem))
    return problems


_FAILED = sentence("it failed for too long.")


def _programs(organization_ids: Sequence[str]) -> list[Finding]:
    """Find applications and keys that may do more than their makers."""
    return [
        Finding(each.organization_id, WARNING, "PROGRAM_UNCONFIRMED", _unconfirmed(each.name))
        for each in unbacked_programs(organization_ids)
    ]


def _unconfirmed(name: str) -> str:
    return sentence(
        "%(name)s may do more than the person who made it. Confirm it, or remove permissions.",
        name=name,
    )


def _privacy_requests(organization_ids: Sequence[str]) -> list[Finding]:
    """Find organizations that have not answered requests for a data export or erasure in time."""
    counts = requests.overdue(organization_ids)
    return [
        Finding(each, WARNING, "PRIVACY_REQUEST_OVERDUE", _overdue(counts[each]))
        for each in organization_ids
        if each in counts
    ]


def _overdue(count: int) -> str:
    return counted(
        "%(count)s privacy request is overdue.", "%(count)s privacy requests are overdue.", count
    )
