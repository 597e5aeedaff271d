"""Reading the audit: newest first, by keyset, each entry with its values."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from rme.core import ids
from rme.core.db import keyset
from rme.tenants.audit import writer
from rme.tenants.audit.values import describe
from rme.tenants.models import AuditEntry, AuditValues

LABELS = 1000
"""The most entries that a name of an object finds, the newest ones."""


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """What is looked for in the audit. Empty fields match all."""

    organization_id: str | None
    """None: the entries that concern the deployment."""
    person: str = ""
    """The user name of the actor, or of the user whom the actor acted as."""
    action: str = ""
    kind: str = ""
    object: str = ""
    """The id of an object, or the beginning of its label."""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class AuditLine:
    """An entry and what it says about its object, if that is still there."""

    entry: AuditEntry
    values: AuditValues | None

    @property
    def is_erased(self) -> bool:
        """Return whether the entry had values that an erasure has removed."""
        return self.values is None and bool(self.entry.digest)

    @property
    def is_altered(self) -> bool:
        """Return whether the values were changed in the database."""
        if self.values is None:
            return False
        return self.entry.digest != writer.digest(self.entry.pk, vars(self.values))

    @property
    def lines(self) -> list[str]:
        """Return the values before and after, and the reason, as lines for people."""
        return describe(self.values.changes, self.values.reason) if self.values else []


def find(
    query: AuditFilter, *, before: UUID | None = None, limit: int
) -> tuple[list[AuditLine], UUID | None]:
    """Return entries, newest first, and the id after which the next page begins.

    Two statements, or three where an object is looked for.
    """
    rows = _of_organization(query.organization_id)
    exact = {"action": query.action, "kind": query.kind}
    rows = rows.filter(**{name: value for name, value in exact.items() if value})
    if query.person:
        rows = rows.filter(Q(actor_name=query.person) | Q(acting_as_name=query.person))
    if query.object:
        rows = rows.filter(Q(object_id=query.object) | Q(pk__in=_labelled(query)))
    if query.since:
        rows = rows.filter(pk__gte=ids.at_least(query.since))
    if query.until:
        rows = rows.filter(pk__lt=ids.at_least(query.until))
    entries, following = keyset.page(rows, limit=limit, before=before)
    return with_values(entries), following


def get(organization_id: str | None, entry_id: UUID) -> AuditLine | None:
    """Return one entry with its values; two statements."""
    entry = _of_organization(organization_id).filter(pk=entry_id).first()
    return with_values([entry])[0] if entry else None


def _of_organization(organization_id: str | None) -> QuerySet[AuditEntry]:
    if organization_id is None:
        return AuditEntry.objects.filter(organization_id__isnull=True)
    return AuditEntry.objects.filter(organization_id=organization_id)


def _labelled(query: AuditFilter) -> list[UUID]:
    """Return the newest entries about objects whose label begins with a text."""
    rows = AuditValues.objects.filter(label__istartswith=query.object)
    if query.organization_id is None:
        rows = rows.filter(organization_id__isnull=True)
    else:
        rows = rows.filter(organization_id=query.organization_id)
    return list(rows.order_by("-entry_id").values_list("entry_id", flat=True)[:LABELS])


def with_values(entries: Sequence[AuditEntry]) -> list[AuditLine]:
    """Return entries with their values; one statement."""
    values = AuditValues.objects.in_bulk([each.pk for each in entries])
    return [AuditLine(each, values.get(each.pk)) for each in entries]


def history(
    kind: str, object_id: str, organization_id: str | None = None, *, limit: int
) -> list[AuditLine]:
    """Return the newest entries about a row, in one organization or in all; two statements."""
    rows = AuditEntry.objects.filter(kind=kind, object_id=object_id)
    if organization_id is not None:
        rows = rows.filter(organization_id=organization_id)
    return with_values(list(rows.order_by("-pk")[:limit]))


def has_entries(organization_id: str) -> bool:
    """Return whether an organization has, or had, this id: entries outlive it."""
    return AuditEntry.objects.filter(organization_id=organization_id).exists()


def describe_log_entry(entry: LogEntry) -> list[str]:
    """Return an entry of the admin's log, which former releases wrote, as lines for people, like
    `name: Ada → Grace`.
    """
    try:
        parts = json.loads(entry.change_message or "[]")
    except ValueError:
        return []
    lines = []
    for part in parts if isinstance(parts, list) else []:
        lines += [
            f"{name}: {old or '–'} → {new or '–'}"
            for name, (old, new) in part.get("values", {}).items()
        ]
        if "reason" in part:
            lines.append(_("reason: %(reason)s") % {"reason": part["reason"]})
    return lines
