"""What people have left open in organizations: pauses, reviews of templates, and rejected rows of
imports. Health and Home show it beside the configuration.
"""

from collections.abc import Sequence
from datetime import timedelta

from django.db.models import F, Q, Value

from messaging.domain import attention
from messaging.domain.attention import Finding, ImportFacts, PauseFacts
from messaging.domain.channels import Channel
from messaging.models import PartialVersion, Pause, SuppressionImport, TemplateVersion
from rme.core.db import clock
from rme.crm.models import RecordImport
from rme.tenants.imports import FileImport

LIMIT = 50
"""The most pauses, and the most imports of a kind, that are shown."""
IMPORTS_SHOWN = timedelta(days=1)
"""How long an import with rejected rows is shown."""


def findings(organization_ids: Sequence[str]) -> list[Finding]:
    """Return what is open in organizations, in three statements however many they are."""
    return [*_pauses(organization_ids), *_imports(organization_ids), *reviews(organization_ids)]


def _pauses(organization_ids: Sequence[str]) -> list[Finding]:
    lasting = Q(ends_at=None) | Q(ends_at__gt=clock.now())
    rows = Pause.objects.filter(lasting, organization_id__in=organization_ids).order_by("id")
    return [
        Finding(row.organization_id, *attention.pause_problem(_pause_facts(row)), row.pk)
        for row in rows[:LIMIT]
    ]


def _pause_facts(row: Pause) -> PauseFacts:
    channel = Channel(row.channel).label if row.channel else ""
    return PauseFacts(channel, row.category, row.template, row.reason)


def _imports(organization_ids: Sequence[str]) -> list[Finding]:
    """Find the latest imports that rejected rows."""
    kinds = {RecordImport: F("kind"), SuppressionImport: Value("Suppression")}
    records, suppressions = (
        model._default_manager.filter(
            organization_id__in=organization_ids,
            finished_at__gt=clock.now() - IMPORTS_SHOWN,
            rejected__gt=0,
            state=FileImport.State.DONE,
            dry_run=False,
        )
        .annotate(of=kind)
        .values_list("organization_id", "name", "rows", "rejected", "pk", "of")
        for model, kind in kinds.items()
    )
    return [
        Finding(owner, *attention.import_problem(ImportFacts(name, rows, rejected)), pk, kind)
        for owner, name, rows, rejected, pk, kind in records.union(suppressions, all=True)[:LIMIT]
    ]


def reviews(organization_ids: Sequence[str]) -> list[Finding]:
    """Find organizations whose templates or partials wait for a review; one statement.

    The finding names the template if only one waits.
    """
    texts, partials = (
        model._default_manager.filter(
            **{f"{model.OWNER}__organization_id__in": organization_ids},
            state=model.State.DRAFT,
            approved_by="",
        )
        .exclude(review_by="")
        .values_list(f"{model.OWNER}__organization_id", template)
        for model, template in ((TemplateVersion, F("template__name")), (PartialVersion, Value("")))
    )
    names_by_organization: dict[str, list[str]] = {}
    for organization_id, name in texts.union(partials, all=True):
        names_by_organization.setdefault(organization_id, []).append(name)
    return [
        Finding(
            organization_id,
            *attention.review_problem(len(names)),
            names[0] if len(set(names)) == 1 and names[0] else None,
        )
        for organization_id, names in names_by_organization.items()
    ]
