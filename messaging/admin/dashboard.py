"""The dashboard: deliveries of the last day, and tasks for administrators. A handful of queries."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Count, Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from messaging.models import Delivery, Pause
from messaging.models.statuses import Status
from messaging.reports import configuration
from rme.core import ids
from rme.core.cache import TtlCache
from rme.tenants.roles import Permission, organizations_for

ORGANIZATIONS = 50
"""Tasks are searched in at most this many organizations."""

Counts = dict[str, dict[str, int]]
"""Deliveries by channel and status."""

# To count a day may read a million rows, so the counts are cached for half a minute.
_counts: TtlCache[tuple[str, ...], Counts] = TtlCache(seconds=30, size=256)


@dataclass(frozen=True, slots=True)
class Task:
    """A task for an administrator, and the page where it can be done."""

    text: str
    url: str


def show(request: HttpRequest, context: dict[str, object]) -> dict[str, Any]:
    """Return the template context of the dashboard (called by the theme)."""
    counted = dict(organizations_for(request, Permission.SEE_MESSAGES).values_list("pk", "name"))
    seen = organizations_for(request, Permission.SEE_SETTINGS).values_list("pk", "name")
    checked = dict(list(seen)[:ORGANIZATIONS])
    found = _counts.get(tuple(counted), lambda: _day(counted)) or {}
    columns = [status for status in Status if any(status in row for row in found.values())]
    rows = [(channel, [row.get(status, 0) for status in columns]) for channel, row in found.items()]
    return {**context, "columns": columns, "rows": rows, "tasks": tasks(checked)}


def _day(organizations: Collection[str]) -> Counts:
    since = ids.at_least(timezone.now() - timedelta(hours=24))
    rows = Delivery.objects.filter(pk__gte=since, organization_id__in=list(organizations))
    found: Counts = {}
    counted = rows.values_list("channel", "status").annotate(count=Count("pk")).order_by("channel")
    for channel, status, count in counted:
        found.setdefault(channel, {})[status] = count
    return found


def tasks(organizations: dict[str, str]) -> list[Task]:
    """Return the tasks of organizations, which are given as names by id."""
    found = configuration.findings(list(organizations))
    return [
        *(
            Task(f"{organizations[each.organization_id]}: {each.message}", _page(each))
            for each in found
        ),
        *_pauses(organizations),
    ]


PAGES = {
    "HELD_UNKNOWN": "delivery",
    "NO_SENDER_DOMAIN": "senderdomain",
    "SENDER_DOMAIN_UNVERIFIED": "senderdomain",
    "TEMPLATE_WITHOUT_LANGUAGE": "template",
    "WEBHOOK_DISABLED": "webhookendpoint",
    "WEBHOOK_FAILING": "webhookendpoint",
}
"""The page for each finding, if it is not that of the provider accounts."""


def _page(finding: configuration.Finding) -> str:
    page = f"admin:messaging_{PAGES.get(finding.code, 'provideraccount')}"
    if finding.row_id is None:
        return reverse(f"{page}_changelist")
    return reverse(f"{page}_change", args=[finding.row_id])


def _pauses(organizations: dict[str, str]) -> list[Task]:
    lasting = Q(ends_at=None) | Q(ends_at__gt=timezone.now())
    rows = Pause.objects.filter(lasting, organization_id__in=organizations).order_by("id")[:50]
    return [
        Task(f"{organizations[row.organization_id]}: {row}: {row.reason}", url)
        for row in rows
        if (url := reverse("admin:messaging_pause_change", args=[row.pk]))
    ]
