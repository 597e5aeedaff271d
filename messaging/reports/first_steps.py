"""The first steps of an organization, from its sender domain to its first delivered message."""

from collections.abc import Collection
from dataclasses import dataclass, fields

from django.db.models import Exists, OuterRef

from messaging.domain.statuses import Status
from messaging.models import Delivery, ProviderAccount, SenderDomain, TemplateVersion
from rme.core.cache import TtlCache
from rme.tenants.models import ApiKey, Application, Organization


@dataclass(frozen=True, slots=True)
class Progress:
    """Which steps an organization has done."""

    organization_id: str
    name: str
    has_domain: bool
    domain: bool
    """A sender domain is verified."""
    provider: bool
    """A provider account is active."""
    simulator: bool
    """The simulator receives what no account sends."""
    provider_checked: bool
    """The last check of an active account found that it works."""
    template: bool
    """A version of a template is active."""
    delivered: bool
    keys: bool

    @property
    def complete(self) -> bool:
        can_send = self.provider or self.simulator
        return all((self.domain, can_send, self.template, self.delivered, self.keys))


_complete: TtlCache[str, Progress] = TtlCache(seconds=3600)


def read(organization_ids: Collection[str]) -> list[Progress]:
    """Return the progress of organizations, by one statement; each step stops at its first row."""
    of_organization = {"organization_id": OuterRef("pk")}
    domains = SenderDomain.objects.filter(**of_organization)
    accounts = ProviderAccount.objects.filter(**of_organization, state=ProviderAccount.State.ACTIVE)
    versions = TemplateVersion.objects.filter(
        template__organization_id=OuterRef("pk"), state=TemplateVersion.State.ACTIVE
    )
    sent = Delivery.objects.filter(**of_organization, status__in=(Status.SENT, Status.DELIVERED))
    applications = Application.objects.filter(**of_organization)
    api_keys = ApiKey.objects.filter(**of_organization, revoked_at=None)
    rows = (
        Organization.objects.filter(pk__in=organization_ids)
        .annotate(
            has_domain=Exists(domains),
            domain=Exists(domains.filter(verified_at__isnull=False)),
            provider=Exists(accounts),
            provider_checked=Exists(accounts.filter(checked_at__isnull=False, check_problem="")),
            template=Exists(versions),
            delivered=Exists(sent),
            keys=Exists(applications) | Exists(api_keys),
        )
        .order_by("name", "pk")
    )
    names = (field.name for field in fields(Progress) if field.name != "organization_id")
    return [Progress(*row) for row in rows.values_list("pk", *names)]


def incomplete(organization_ids: Collection[str]) -> list[Progress]:
    """Return the organizations that lack a step. What is complete is not read again for an hour."""
    lacking: list[Progress] = []

    def load(organization_ids: list[str]) -> dict[str, Progress]:
        progress = read(organization_ids)
        lacking.extend(each for each in progress if not each.complete)
        return {each.organization_id: each for each in progress if each.complete}

    _complete.get_many(organization_ids, load)
    return lacking
