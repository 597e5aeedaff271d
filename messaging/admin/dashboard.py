"""The admin's first page: the operations home, checklists of new organizations, recent actions."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse

from messaging.admin import first_steps
from messaging.console.home import page


def show(request: HttpRequest, context: dict[str, object]) -> dict[str, Any]:
    """Return the template context of the first page (called by the theme)."""
    home = page.context(request)
    return {
        **context,
        **home,
        "recent": recent_actions(request),
        "first_steps": first_steps.lists(home["checked"]),
    }


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
    """Return the person's last actions: one statement, and one for each kind of row."""
    entries = LogEntry.objects.filter(user=request.user.pk).select_related("content_type")
    shown = list(entries.order_by("-action_time")[:RECENT])
    ids: dict[type[Model], set[str]] = defaultdict(set)
    for entry in shown:
        model = entry.content_type.model_class() if entry.content_type else None
        if model and entry.object_id and admin.site.is_registered(model):
            ids[model].add(entry.object_id)
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
            name=entry.object_repr,
            kind=kind.name if kind else "",
            at=entry.action_time,
            url=urls.get((f"{kind.app_label}.{kind.model}", entry.object_id), "") if kind else "",
        )
        for entry in shown
        for kind in [entry.content_type]
    ]
