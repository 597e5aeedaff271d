"""Views of the list of messages: built-in filters, a person's own, and shared ones."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from messaging.console import access
from messaging.console.access import Viewer, note
from messaging.console.filters.message_filter import HELD, MessageFilterForm, in_words
from messaging.models import SavedFilter
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action

SHOWN = 100
"""The most saved filters that a page shows, and that a person saves in an organization."""
QUERY_LIMIT = SavedFilter._meta.get_field("query").max_length or 0
BUILT_IN = {
    gettext_lazy("All"): "",
    gettext_lazy("Failed"): "status=FAILED",
    gettext_lazy("Scheduled"): "status=SCHEDULED",
    gettext_lazy("Needs review"): f"status={HELD}",
}
"""The query of each view that every organization has, by name."""


@dataclass(frozen=True, slots=True)
class FilterLink:
    """A saved filter as a link; `is_open`: it is what the page shows."""

    name: str | Promise
    url: str
    is_open: bool
    is_shared: bool = False


class SaveFilterForm(forms.Form):
    """The name of a filter, and who sees it."""

    name = forms.CharField(
        max_length=80,
        label=gettext_lazy("Name"),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    is_shared = forms.BooleanField(
        required=False, label=gettext_lazy("Share with the organization")
    )

    def __init__(self, filters: MessageFilterForm, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="save_%s", label_suffix="")
        self.filters = filters

    def clean(self) -> dict[str, object]:
        """Check that there are filters to save, that they are valid, and that none is a person."""
        cleaned = super().clean() or {}
        query = self.filters.query
        if not self.filters.is_valid() or not 0 < len(query) <= QUERY_LIMIT:
            self.add_error(None, _("Choose valid filters first, then save them."))
        elif self.filters.data.get("person"):
            self.add_error(None, _("A view can't contain a person. Remove the search first."))
        return cleaned


def links(viewer: Viewer, query: str) -> list[FilterLink]:
    """Return the filters that a person may open, `query` being the open one; one statement."""
    page = reverse("console:messages", args=[viewer.organization_id])
    built_in = [
        FilterLink(name, f"{page}?{each}" if each else page, each == query)
        for name, each in BUILT_IN.items()
    ]
    saved = [
        FilterLink(row.name, f"{page}?{row.query}", row.query == query, row.is_shared)
        for row in _visible(viewer)[:SHOWN]
    ]
    return built_in + saved


def _visible(viewer: Viewer) -> QuerySet[SavedFilter]:
    rows = SavedFilter.objects.filter(organization_id=viewer.organization_id)
    return rows.filter(Q(user_id=viewer.user.pk) | Q(is_shared=True)).order_by("name", "pk")


@access.page
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the list of saved filters, to rename and delete them; a POST saves one."""
    form = None
    if request.method == "POST":
        filters = MessageFilterForm(viewer, request.POST)
        form = SaveFilterForm(filters, request.POST)
        if form.is_valid():
            return _save(request, viewer, form)
    rows = _visible(viewer).select_related("user")[:SHOWN]
    lines = [(row, in_words(QueryDict(row.query)), _may_change(viewer, row)) for row in rows]
    return access.show(request, viewer, "filters", _("Saved views"), form=form, filters=lines)


def _save(request: HttpRequest, viewer: Viewer, form: SaveFilterForm) -> HttpResponseBase:
    """Store a filter, in place of the person's other one of that name, and open it."""
    owner: dict[str, Any] = {"organization_id": viewer.organization_id, "user_id": viewer.user.pk}
    name, query = form.cleaned_data["name"], form.filters.query
    page = reverse("console:messages", args=[viewer.organization_id])
    if SavedFilter.objects.filter(**owner).count() >= SHOWN:
        messages.error(
            request,
            _("You already have %(number)s saved views. Delete one first.") % {"number": SHOWN},
        )
        return HttpResponseRedirect(f"{page}?{query}")
    values = {"query": query, "is_shared": form.cleaned_data["is_shared"]}
    with transaction.atomic():
        row, is_new = SavedFilter.objects.update_or_create(**owner, name=name, defaults=values)
        action = Action.ADDED if is_new else Action.CHANGED
        note(viewer, action, row, label=name, changes=access.values(**values))
    text = _("Saved: %(name)s.") if is_new else _("Replaced: %(name)s.")
    messages.success(request, text % {"name": name})
    return HttpResponseRedirect(f"{page}?{query}")


def _may_change(viewer: Viewer, row: SavedFilter) -> bool:
    """Return whether a filter is the person's own, or shared and the person an owner."""
    return row.user_id == viewer.user.pk or viewer.may(Permission.GRANT_ROLES)


@access.page
@require_POST
def change(request: HttpRequest, viewer: Viewer, filter_id: UUID) -> HttpResponseBase:
    """Rename or delete a saved filter."""
    row = get_object_or_404(_visible(viewer), pk=filter_id)
    if not _may_change(viewer, row):
        raise Http404
    name = request.POST.get("name", "").replace("\0", "").strip()[:80]
    if request.POST.get("do") == "delete":
        with transaction.atomic():
            note(viewer, Action.DELETED, row, label=row.name)
            row.delete()
        messages.success(request, _("Deleted: %(name)s.") % {"name": row.name})
    elif name:
        try:
            with transaction.atomic():
                SavedFilter.objects.filter(pk=row.pk).update(name=name)
                changes = {"name": [row.name, name]}
                note(viewer, Action.CHANGED, row, label=name, changes=changes)
            messages.success(request, _("Renamed: %(name)s.") % {"name": name})
        except IntegrityError:
            messages.error(request, _("You already have a view called %(name)s.") % {"name": name})
    else:
        messages.error(request, _("Type a name."))
    return HttpResponseRedirect(reverse("console:filters", args=[viewer.organization_id]))
