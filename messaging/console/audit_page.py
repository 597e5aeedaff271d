"""The audit's page: who did what, when and from where, with filters and an export.

Each organization has its own, for who may SEE_AUDIT there; superusers have that of the deployment.
"""

from collections.abc import Callable, Iterator, Sequence

from django import forms
from django.apps import apps
from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponseBase, QueryDict
from django.urls import NoReverseMatch, reverse
from django.views.decorators.http import require_GET, require_POST

from messaging.console import access
from messaging.console.access import View, Viewer
from messaging.console.filters.filter_form import FilterForm, MomentField
from messaging.models import BulkAction, ConsentEntry, Message, Suppression
from rme.core import csv_lines, ids
from rme.core.db.clock import iso
from rme.core.http import downloads
from rme.crm.models import Contact
from rme.tenants import audit
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action, AuditFilter, AuditLine
from rme.tenants.models import User

PAGE = 50
EXPORTED = 100_000
"""The most entries of an export."""
EXPORT_PAGE = 1000
_PAGES = {
    Contact._meta.label_lower: "console:person",
    Message._meta.label_lower: "console:message",
    BulkAction._meta.label_lower: "console:action",
    ConsentEntry._meta.label_lower: "console:consent_entry",
    Suppression._meta.label_lower: "console:suppression",
}
"""The console's pages of objects; others have one of the admin."""
_HEADER = (
    "time", "person", "acting as", "action", "kind", "object", "object id", "text",
    "before and after", "reason", "address", "request", "browser",
)  # fmt: skip


class AuditFilterForm(FilterForm):
    person = forms.CharField(
        required=False,
        max_length=150,
        widget=forms.TextInput(attrs={"type": "search", "placeholder": "User name"}),
    )
    action = forms.ChoiceField(required=False, choices=[("", "Any action"), *Action.choices])
    kind = forms.ChoiceField(required=False, label="Kind of object")
    object = forms.CharField(
        required=False,
        max_length=255,
        widget=forms.TextInput(attrs={"type": "search", "placeholder": "Name or id"}),
    )
    since = MomentField(required=False, label="From")
    until = MomentField(required=False, label="Until")

    def __init__(self, data: QueryDict) -> None:
        super().__init__(data)
        kinds = {model._meta.label_lower for model in admin.site._registry} | _PAGES.keys()
        self.offer("kind", [("", "Any kind"), *sorted((kind, _noun(kind)) for kind in kinds)])

    @property
    def in_words(self) -> str:
        """Return the filters that are set as a text."""
        return ", ".join(f"{name}: {value}" for name, value in self.typed.items())

    def read(self, organization_id: str | None) -> AuditFilter:
        """Return what the form means; a form that is not valid filters by its valid fields."""
        return AuditFilter(organization_id, **self.valid_values())


def _noun(kind: str) -> str:
    """Return the kind of an object in words."""
    try:
        return str(apps.get_model(kind)._meta.verbose_name)
    except (LookupError, ValueError):
        return kind.rpartition(".")[2]


class ShownLine:
    """An entry in words, with a link to its object."""

    def __init__(self, line: AuditLine, organization_id: str | None) -> None:
        self.line, self.entry = line, line.entry
        self.kind = _noun(line.entry.kind) if line.entry.kind else ""
        self.url = _url(line.entry.kind, line.entry.object_id, organization_id)
        self.label = line.values.label if line.values else ""


def _url(kind: str, object_id: str, organization_id: str | None) -> str:
    """Return the page of an object; empty if its kind has no page."""
    if kind == User._meta.label_lower and organization_id is not None:
        return ""  # people's own pages are the deployment's
    try:
        if organization_id is not None and kind in _PAGES:
            return reverse(_PAGES[kind], args=[organization_id, object_id])
        return reverse(f"admin:{kind.replace('.', '_')}_change", args=[object_id])
    except NoReverseMatch:
        return ""


@access.page
@require_GET
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the audit of an organization."""
    viewer.require(Permission.SEE_AUDIT)
    return _show(request, viewer, viewer.organization_id, viewer.organization.name)


@access.page
@require_POST
def export(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return what the filters match of an organization's audit as CSV, and record the export."""
    viewer.require(Permission.SEE_AUDIT)
    form = AuditFilterForm(request.POST)
    changes = access.values(filter=form.in_words)
    name = f"audit-{viewer.organization_id}"
    # The file has the entry of its own export.
    access.note(viewer, Action.EXPORTED, text="audit", changes=changes)
    return downloads.file(request, name, downloads.CSV, _csv, form.read(viewer.organization_id))


def _superusers(view: Callable[[HttpRequest], HttpResponseBase]) -> View:
    """Return a view of the deployment's audit, which is there for superusers alone."""

    def enter(request: HttpRequest) -> HttpResponseBase:
        if not request.user.is_superuser:
            raise Http404
        return view(request)

    guarded: View = admin.site.admin_view(enter)
    return guarded


@_superusers
@require_GET
def of_deployment(request: HttpRequest) -> HttpResponseBase:
    """Return the audit of what concerns no organization."""
    return _show(request, None, None, "the deployment")


@_superusers
@require_POST
def export_of_deployment(request: HttpRequest) -> HttpResponseBase:
    """Return what the filters match of the deployment's audit as CSV, and record the export."""
    form = AuditFilterForm(request.POST)
    changes = access.values(filter=form.in_words)
    entry = audit.NewEntry(Action.EXPORTED, text="audit of the deployment", changes=changes)
    audit.record(audit.actor_of(request), [entry])
    return downloads.file(request, "audit", downloads.CSV, _csv, form.read(None))


def _show(
    request: HttpRequest, viewer: Viewer | None, organization_id: str | None, name: str
) -> HttpResponseBase:
    form = AuditFilterForm(request.GET)
    cursor = ids.parse(request.GET.get("after", ""))
    entries, following = audit.find(form.read(organization_id), before=cursor, limit=PAGE)
    return access.show(
        request,
        viewer,
        "audit",
        f"Audit of {name}",
        form=form,
        lines=[ShownLine(line, organization_id) for line in entries],
        following=following,
        sees_deployment=request.user.is_superuser,
    )


def _csv(filters: AuditFilter) -> Iterator[str]:
    return csv_lines.write_rows(_table(filters))


def _table(filters: AuditFilter) -> Iterator[Sequence[str]]:
    """Yield the rows of an export, page by page, up to EXPORTED."""
    yield _HEADER
    cursor, count = None, 0
    while count < EXPORTED:
        entries, cursor = audit.find(filters, before=cursor, limit=EXPORT_PAGE)
        yield from (_cells(line) for line in entries)
        count += len(entries)
        if cursor is None:
            return


def _cells(line: AuditLine) -> Sequence[str]:
    entry, values = line.entry, line.values
    placeholder = "(erased)" if line.is_erased else ""
    return (
        iso(entry.at) or "", entry.actor_name, entry.acting_as_name, entry.action, entry.kind,
        values.label if values else placeholder, entry.object_id, values.text if values else "",
        "; ".join(audit.describe(values.changes)) if values else "",
        values.reason if values else "", entry.address, entry.request_id, entry.user_agent,
    )  # fmt: skip
