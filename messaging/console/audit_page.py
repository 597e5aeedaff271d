"""The audit's page: who did what, when and from where, with filters and an export.

Each organization has its own, for who may SEE_AUDIT there; superusers have that of the deployment.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar
from uuid import UUID

from django import forms
from django.apps import apps
from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponseBase, QueryDict
from django.urls import NoReverseMatch, reverse
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST

from messaging.console import access
from messaging.console.access import View, Viewer
from messaging.console.filters import list_page
from messaging.console.filters.filter_form import FilterForm, MomentField
from messaging.models import BulkAction, ConsentEntry, Message, Suppression
from rme.components.tables import Cell, Column, Target
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
    search_name: ClassVar[str] = "person"
    person = forms.CharField(
        required=False,
        max_length=150,
        label=_("Person"),
        widget=forms.TextInput(attrs={"type": "search", "placeholder": _("User name")}),
    )
    action = forms.ChoiceField(
        required=False,
        label=_("Action"),
        choices=[
            ("", _("Any action")),
            *((code, capfirst(words)) for code, words in Action.choices),
        ],
    )
    kind = forms.ChoiceField(required=False, label=_("Kind of object"))
    object = forms.CharField(
        required=False,
        max_length=255,
        label=_("Object"),
        widget=forms.TextInput(attrs={"type": "search", "placeholder": _("Name or id")}),
    )
    since = MomentField(required=False, label=_("From"))
    until = MomentField(required=False, label=_("Until"))

    def __init__(self, data: QueryDict) -> None:
        super().__init__(data)
        kinds = {model._meta.label_lower for model in admin.site._registry} | _PAGES.keys()
        words = sorted((capfirst(_noun(kind)), kind) for kind in kinds)
        self.offer("kind", [("", gettext("Any kind")), *((kind, noun) for noun, kind in words)])

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

    @property
    def action(self) -> str:
        """Return what was done, such as `Changed`."""
        return capfirst(self.entry.action_words)

    @property
    def object(self) -> Cell:
        """Return to what it was done."""
        label = self.label or self.entry.object_id
        return Cell(capfirst(self.kind), label) if self.kind else Cell(label)

    @property
    def who(self) -> str:
        """Return the actor, and the user whom the actor acted as."""
        names = {"actor": self.entry.actor_name or gettext("unknown")}
        if not self.entry.acting_as_name:
            return names["actor"]
        names["user"] = self.entry.acting_as_name
        return gettext("%(actor)s acting as %(user)s") % names

    @property
    def details(self) -> Cell:
        """Return the values before and after, and whether they are as they were recorded."""
        if self.line.is_erased:
            return Cell(gettext("Erased with the person"))
        altered = [(gettext("Changed in the database"), "bad")] if self.line.is_altered else []
        text = self.line.values.text if self.line.values else ""
        return Cell("; ".join(filter(None, [text, *self.line.lines])), pills=altered)


COLUMNS: list[Column[ShownLine]] = [
    Column("action", _("Action"), lambda line: Cell(line.action)),
    Column("object", _("Object"), lambda line: line.object, "wide"),
    Column("details", _("Details"), lambda line: line.details, "wide"),
    Column("who", _("Who"), lambda line: Cell(line.who)),
    Column("address", _("IP address"), lambda line: Cell(line.entry.address)),
    Column("browser", _("Browser"), lambda line: Cell(line.entry.user_agent), is_shown=False),
    Column("request", _("Request id"), lambda line: Cell(line.entry.request_id), is_shown=False),
    Column("at", _("Time"), lambda line: Cell(at=line.entry.at), "small"),
]


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
@list_page.takes_columns
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the audit of an organization."""
    viewer.require(Permission.SEE_AUDIT)
    return _show(request, viewer, viewer.organization_id)


@access.page
@require_GET
def show_one(request: HttpRequest, viewer: Viewer, audited_id: UUID) -> HttpResponseBase:
    """Return the page of an entry of an organization's audit."""
    viewer.require(Permission.SEE_AUDIT)
    return _show_one(request, viewer, viewer.organization_id, audited_id)


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


def _superusers(view: View) -> View:
    """Return a view of the deployment's audit, which is there for superusers alone."""

    def enter(request: HttpRequest, **kwargs: object) -> HttpResponseBase:
        if not request.user.is_superuser:
            raise Http404
        return view(request, **kwargs)

    guarded: View = admin.site.admin_view(enter)
    return guarded


@_superusers
@require_GET
def of_deployment(request: HttpRequest) -> HttpResponseBase:
    """Return the audit of what concerns no organization."""
    return _show(request, None, None)


@_superusers
@require_GET
def one_of_deployment(request: HttpRequest, audited_id: UUID) -> HttpResponseBase:
    """Return the page of an entry that concerns no organization."""
    return _show_one(request, None, None, audited_id)


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
    request: HttpRequest, viewer: Viewer | None, organization_id: str | None
) -> HttpResponseBase:
    form = AuditFilterForm(request.GET)
    cursor = ids.parse(request.GET.get("after", ""))
    entries, following = audit.find(form.read(organization_id), before=cursor, limit=PAGE)
    return list_page.show(
        request,
        viewer,
        "audit",
        gettext("Audit") if viewer else gettext("Audit of the deployment"),
        columns=COLUMNS,
        lines=[ShownLine(line, organization_id) for line in entries],
        target=partial(_target, organization_id),
        form=form,
        following=following,
        sees_deployment=request.user.is_superuser,
    )


def _target(organization_id: str | None, line: ShownLine) -> Target:
    name = gettext("entry: %(action)s by %(who)s") % {"action": line.action, "who": line.who}
    if organization_id is None:
        url = reverse("console:deployment_audit_entry", args=[line.entry.pk])
    else:
        url = reverse("console:audit_entry", args=[organization_id, line.entry.pk])
    return Target(url, name, line.entry.at)


def _show_one(
    request: HttpRequest, viewer: Viewer | None, organization_id: str | None, audited_id: UUID
) -> HttpResponseBase:
    audit_line = audit.get(organization_id, audited_id)
    if audit_line is None:
        raise Http404
    line = ShownLine(audit_line, organization_id)
    links = [(line.url, gettext("Open object"))] if line.url else []
    page = "console:audit" if viewer else "console:deployment_audit"
    back = reverse(page, args=[organization_id] if viewer else []), gettext("All entries")
    title = gettext("Audit entry")
    return list_page.show_row(request, viewer, title, COLUMNS, line, links=links, back=back)


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
