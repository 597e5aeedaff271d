"""The admin's first page: the operations home, checklists of new organizations, recent actions."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse

from messaging.admin import first_steps
from messaging.console.home import page
from rme.tenants import audit
from rme.tenants.models import User


def show(request: HttpRequest, context: dict[str, object]) -> dict[str, Any]:
    """Return the template context of the first page (called by the theme)."""
    home = page.context(request)
    return {
        **context,
        **home,
        "title": "Operations",
        "recent": recent_actions(request),
        "first_steps": first_steps.lists(cast("Collection[str]", home["checked"])),
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
    """Return the person's last actions: two statements, and one for each kind of row."""
    lines = audit.recent(cast(User, request.user).pk, limit=RECENT)
    ids: dict[type[Model], set[str]] = defaultdict(set)
    models = {model._meta.label_lower: model for model in admin.site._registry}
    for line in lines:
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
        for line in lines
    ]
