"""The admin's first page: what was sent in a day, and what there is to do. A handful of queries."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Count, Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from messaging import policy
from messaging.models import Delivery, Pause, ProviderAccount, SenderDomain
from messaging.states import Status
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.channels import Channel
from rme.tenants.admin_base import EVERYBODY, READERS, organizations_for

ORGANIZATIONS = 50
"""Things to do are looked for in at most this many organizations."""

Counts = dict[str, dict[str, int]]
"""Deliveries by channel and status."""

# Counting a day may read a million rows: once in half a minute and organizations is enough.
_counts: TtlCache[tuple[str, ...], Counts] = TtlCache(seconds=30, size=256)


@dataclass(frozen=True, slots=True)
class Task:
    """Something that waits for a person, and the page where it is done."""

    text: str
    url: str


def show(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Give the first page what it shows (called by the theme)."""
    everywhere = dict(organizations_for(request, EVERYBODY).values_list("pk", "name"))
    told = dict(list(organizations_for(request, READERS).values_list("pk", "name"))[:ORGANIZATIONS])
    found = _counts.get(tuple(everywhere), lambda: _day(everywhere)) or {}
    columns = [status for status in Status if any(status in row for row in found.values())]
    rows = [(channel, [row.get(status, 0) for status in columns]) for channel, row in found.items()]
    return {**context, "columns": columns, "rows": rows, "tasks": tasks(told)}


def _day(organizations: Collection[str]) -> Counts:
    since = ids.at_least(timezone.now() - timedelta(hours=24))
    rows = Delivery.objects.filter(pk__gte=since, organization_id__in=list(organizations))
    found: Counts = {}
    counted = rows.values_list("channel", "status").annotate(count=Count("pk")).order_by("channel")
    for channel, status, count in counted:
        found.setdefault(channel, {})[status] = count
    return found


def tasks(organizations: dict[str, str]) -> list[Task]:
    """Say what there is to do in organizations (id to name)."""
    accounts = list(ProviderAccount.objects.filter(organization_id__in=organizations))
    return [
        *_broken(organizations, accounts),
        *_unserved(organizations, accounts),
        *_domains(organizations),
        *_pauses(organizations),
    ]


def _broken(organizations: dict[str, str], accounts: list[ProviderAccount]) -> list[Task]:
    return [
        Task(f"{organizations[row.organization_id]}: the settings of {row.name} are broken.", url)
        for row in accounts
        if policy.account_of(row).provider is None
        and (url := reverse("admin:messaging_provideraccount_change", args=[row.pk]))
    ]


def _unserved(organizations: dict[str, str], accounts: list[ProviderAccount]) -> list[Task]:
    """Name the channels that the simulator stands in for, and those where all is paused."""
    url = reverse("admin:messaging_provideraccount_changelist")
    found = []
    for organization_id, name in organizations.items():
        for channel in Channel:
            states = {
                row.state
                for row in accounts
                if row.organization_id == organization_id and row.channel == channel
            }
            if not states:
                text = f"{name}: no provider for {channel}: the simulator takes what is sent."
                found.append(Task(text, url))
            elif ProviderAccount.State.ACTIVE not in states:
                found.append(Task(f"{name}: no provider account for {channel} is active.", url))
    return found


def _domains(organizations: dict[str, str]) -> list[Task]:
    verified = SenderDomain.objects.filter(
        organization_id__in=organizations, verified_at__isnull=False
    )
    known = set(verified.values_list("organization_id", flat=True))
    url = reverse("admin:messaging_senderdomain_changelist")
    return [
        Task(f"{name}: no verified sender domain: email cannot be sent.", url)
        for organization_id, name in organizations.items()
        if organization_id not in known
    ]


def _pauses(organizations: dict[str, str]) -> list[Task]:
    lasting = Q(ends_at=None) | Q(ends_at__gt=timezone.now())
    rows = Pause.objects.filter(lasting, organization_id__in=organizations).order_by("id")[:50]
    return [
        Task(f"{organizations[row.organization_id]}: {row}: {row.reason}", url)
        for row in rows
        if (url := reverse("admin:messaging_pause_change", args=[row.pk]))
    ]
