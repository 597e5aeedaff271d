"""What needs a person now: the findings of the health report, by harm, and what is paused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from messaging.console.filters.message_filter import HELD
from messaging.models import Pause
from messaging.reports import checks, configuration, health
from messaging.reports.configuration import Finding

PAUSES = 50


@dataclass(frozen=True, slots=True)
class Need:
    """A task for a person, and the page where it can be done; `url` may be empty."""

    text: str
    url: str = ""
    severe: bool = False
    """Sends fail or wait because of it."""


def read(organizations: Mapping[str, str], focused: health.OrganizationHealth | None) -> list[Need]:
    """Return what needs a person in organizations (names by id), the most harmful first.

    `focused` is the health of one of them, which is not read again.
    """
    focused_findings = focused.findings if focused else []
    unread_organizations = [
        each for each in organizations if not focused or each != focused.organization_id
    ]
    findings = [
        *focused_findings,
        *(configuration.findings(unread_organizations) if unread_organizations else []),
    ]
    needs = [*deployment(), *(_of_finding(organizations, each) for each in findings)]
    return sorted(needs, key=attrgetter("severe"), reverse=True)


def deployment() -> list[Need]:
    """Return what the checks of the deployment have found; a check that is ok may have a detail."""
    return [
        Need(f"{name.capitalize()}: {check.detail}.", severe=check.status == checks.DOWN)
        for name, check in checks.run().items()
        if check.detail
    ]


def _of_finding(organizations: Mapping[str, str], finding: Finding) -> Need:
    text = f"{organizations[finding.organization_id]}: {finding.message}"
    return Need(text, _page(finding), finding.severity == configuration.ERROR)


_PAGES = {
    "NO_SENDER_DOMAIN": "domains",
    "SENDER_DOMAIN_UNVERIFIED": "domain",
    "TEMPLATE_WITHOUT_LANGUAGE": "templates",
    "WEBHOOK_DISABLED": "webhook_deliveries",
    "WEBHOOK_FAILING": "webhook_deliveries",
    "PROGRAM_UNCONFIRMED": "programs",
}
"""The console's page for each finding; all others lead to the provider accounts."""


def _page(finding: Finding) -> str:
    row_id = [] if finding.row_id is None else [finding.row_id]
    if finding.code == "HELD_UNKNOWN":
        page = reverse("console:messages", args=[finding.organization_id])
        return f"{page}?status={HELD}"
    if finding.code == "PRIVACY_REQUEST_OVERDUE":
        page = reverse("console:privacy", args=[finding.organization_id])
        return f"{page}?state=OVERDUE"
    name = _PAGES.get(finding.code, "provider" if row_id else "providers")
    return reverse(f"console:{name}", args=[finding.organization_id, *row_id])


def pauses(organizations: Mapping[str, str]) -> Sequence[Need]:
    """Return what is paused in organizations, given as names by id."""
    lasting = Q(ends_at=None) | Q(ends_at__gt=timezone.now())
    rows = Pause.objects.filter(lasting, organization_id__in=organizations).order_by("id")[:PAUSES]
    return [
        Need(f"{organizations[row.organization_id]}: {row}: {row.reason}", url)
        for row in rows
        if (url := reverse("admin:messaging_pause_change", args=[row.pk]))
    ]
