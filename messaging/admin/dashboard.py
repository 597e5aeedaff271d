"""The dashboard: deliveries of the last day, and tasks for administrators. A handful of queries."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Count, Model, Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from messaging.admin import first_steps
from messaging.models import Delivery, Pause
from messaging.models.statuses import Status
from messaging.reports import configuration
from rme.core import ids
from rme.core.cache import TtlCache
from rme.tenants import audit
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
    return {
        **context,
        "columns": columns,
        "rows": rows,
        "tasks": tasks(checked),
        "recent": recent_actions(request),
        "first_steps": first_steps.lists(checked),
    }


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


RECENT = 10
"""How many of a person's last actions are shown."""


@dataclass(frozen=True, slots=True)
class RecentAction:
    """An action of a person; `url` is empty if its row has no page any more."""

    name: str
    kind: str
    at: datetime
    url: str


def recent_actions(request: HttpRequest) -> list[RecentAction]:
    """Return the person's last actions: two statements, and one for each kind of row."""
    shown = audit.recent(request.user.pk, limit=RECENT)
    ids: dict[type[Model], set[str]] = defaultdict(set)
    models = {model._meta.label_lower: model for model in admin.site._registry}
    for line in shown:
        if model := models.get(line.entry.kind):
            ids[model].add(line.entry.object_id)
    urls = {
        (model._meta.label_lower, str(key)): reverse(
            f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[key]
        )
        for model, keys in ids.items()
        for key in admin.site.get_model_admin(model)
        .get_queryset(request)
        .filter(pk__in=keys)
        .values_list("pk", flat=True)
    }
    return [
        RecentAction(
            name=line.values.label if line.values else line.entry.object_id,
            kind=f"{line.entry.action_words}, {line.entry.kind.partition('.')[2]}",
            at=line.entry.at,
            url=urls.get((line.entry.kind, line.entry.object_id), ""),
        )
        for line in shown
    ]
