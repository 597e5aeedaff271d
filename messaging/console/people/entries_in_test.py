"""Consent and suppressions that TEST applications recorded: a layer that live mail never meets."""

from typing import cast
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.translation import gettext as _

from messaging.consent import entries, suppressions
from messaging.console import access, wording
from messaging.console.access import Viewer, note
from messaging.models import ConsentEntryInTest, Suppression, SuppressionInTest
from rme.core import ids
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action

SHOWN = 100
"""The most entries of each kind that the page shows, the newest ones."""


@access.page_for(Permission.SEE_PEOPLE)
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the entries of the TEST layer, of one person if asked; a POST removes one."""
    if request.method == "POST":
        viewer.require(Permission.CHANGE_PEOPLE)
        _remove(viewer, request.POST.get("kind", ""), _key(request.POST.get("entry", "")))
        messages.success(request, _("The test entry is removed."))
        return HttpResponseRedirect(request.get_full_path())
    contact_id = request.GET.get("person", "").replace("\0", "")[:64]
    query = suppressions.SuppressionFilter(contact_id=contact_id or None, test=True)
    suppressed, _following = suppressions.find(viewer.organization_id, query, limit=SHOWN)
    decisions, _following = entries.page(
        viewer.organization_id,
        entries.LedgerFilter(contact_id=contact_id or None, history=True, limit=SHOWN, test=True),
    )
    return access.show(
        request,
        viewer,
        "test_entries",
        _("Test entries"),
        contact_id=contact_id,
        suppressions=[
            (
                row,
                viewer.shown(row.address) or row.contact_id,
                wording.channel(row.channel),
                wording.suppressed_by(row.reason),
            )
            for row in suppressed
        ],
        decisions=[
            (row, wording.decision(row.status, row.channel, row.category)) for row in decisions
        ],
    )


def _key(text: str) -> UUID:
    if not ids.is_canonical(text):
        raise Http404
    return UUID(text)


def _remove(viewer: Viewer, kind: str, key: UUID) -> None:
    """Remove an entry of the TEST layer. Raise Http404 for one that isn't the organization's."""
    model = {"consent": ConsentEntryInTest, "suppression": SuppressionInTest}.get(kind)
    if model is None:
        raise Http404
    rows = model._default_manager.filter(organization_id=viewer.organization_id, pk=key)
    with transaction.atomic():
        row = rows.select_for_update().first()
        if row is None:
            raise Http404
        if isinstance(row, SuppressionInTest):
            suppressions.remove(cast("QuerySet[Suppression]", rows))
        else:
            rows.delete()
        note(viewer, Action.DELETED, row, label="TEST entry")
