"""Admin pages for the import (with progress and report) and export of a list."""

from collections.abc import Iterable, Sequence
from typing import IO, Any, ClassVar

from django import forms
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.urls import path, reverse
from unfold.decorators import action
from unfold.widgets import UnfoldAdminFileFieldWidget, UnfoldAdminSelectWidget

from rme.core import csv_lines
from rme.core.http import edge
from rme.core.http.downloads import csv_file
from rme.tenants import audit, imports
from rme.tenants.admin.base import TenantAdmin
from rme.tenants.imports import FileImport
from rme.tenants.models import Organization
from rme.tenants.roles import organizations_for, organizations_of

SHOWN = 50
"""How many imports the list shows, the newest first."""


class OrganizationForm(forms.Form):
    """A choice of the organization, preselected for a person with only one."""

    organization = forms.ModelChoiceField(Organization.objects, widget=UnfoldAdminSelectWidget)

    def __init__(self, own: QuerySet[Organization], *args: object) -> None:
        super().__init__(*args)
        field: Any = self.fields["organization"]
        field.queryset = own
        first = list(own[:2])
        field.initial = first[0] if len(first) == 1 else None


class ImportForm(OrganizationForm):
    """A file to import."""

    file = forms.FileField(
        # the theme's script expects the theme's own markup
        widget=UnfoldAdminFileFieldWidget(attrs={"accept": ".csv,text/csv"})
    )

    def __init__(self, columns: Sequence[str], *args: object) -> None:
        super().__init__(*args)
        self.fields["file"].help_text = (
            "CSV in UTF-8, at most 100 MB and a million rows. The first line names the "
            f"columns: {', '.join(columns)}."
        )


class FilePages(TenantAdmin):
    """A list with pages for import and export. A subclass defines the file's content."""

    actions_list: ClassVar[list[str]] = ["imports", "export"]
    file_columns: Sequence[str]
    file_noun: str
    """A plural noun for the rows of a file."""

    # --- what a subclass implements -------------------------------------------------------------
    def import_runs(self) -> QuerySet[Any]:
        """Return the imports of this list."""
        raise NotImplementedError

    def start_import(self, organization_id: str, name: str, file: IO[bytes], by: str) -> object:
        """Store a file to import; return the run. Raise Unreadable."""
        raise NotImplementedError

    def cancel_import(self, run: Any) -> bool:
        """Cancel an import; return whether it was running."""
        return imports.cancel(type(run), run.organization_id, run.pk)

    def request_import(self) -> None:
        """Request a worker for the imports."""
        raise NotImplementedError

    def export_lines(self, organization_id: str) -> Iterable[str]:
        """Return an organization's list as blocks of CSV lines."""
        raise NotImplementedError

    # --- pages ----------------------------------------------------------------------------------
    def get_urls(self) -> list[object]:
        pages = [
            ("imports/new/", self.new_import, "new_import"),
            ("imports/<uuid:run_id>/", self.one_import, "import"),
            ("imports/<uuid:run_id>/report/", self.report, "import_report"),
        ]
        ours = [
            path(route, self.admin_site.admin_view(view), name=f"{self._prefix}_{name}")
            for route, view, name in pages
        ]
        edge.files_allowed(ours[0].callback, self.has_add_permission, csv_lines.BYTES_LIMIT)
        return ours + super().get_urls()

    @action(description="Imports", url_path="imports", permissions=["view"])
    def imports(self, request: HttpRequest) -> HttpResponse:
        """Return the list of imports of a person's organizations."""
        runs = list(self._runs(request).select_related("organization").order_by("-pk")[:SHOWN])
        for run in runs:
            run.url = self._url("import", run.pk)
        context = {"runs": runs, "may_add": self.has_add_permission(request)}
        return self._show(request, "import_list", title="Imports", **context)

    @action(description="Export", url_path="export", permissions=["view"])
    def export(self, request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
        """Return an organization's list as a CSV file, after a choice of the organization."""
        own = organizations_for(request, self.read_permission)
        form = OrganizationForm(own, request.POST or None)
        if not form.is_valid():
            context = {"question": "The list leaves as a CSV file.", "form": form}
            return self.show(request, "ask", None, title="Export", **context)
        organization = form.cleaned_data["organization"]
        self.note(request, organization, self.file_noun, audit.Action.EXPORTED)
        return csv_file(self.export_lines(organization.pk), f"{self.file_noun}-{organization.pk}")

    def new_import(self, request: HttpRequest) -> HttpResponse:
        """Store an uploaded file, and redirect to the page with its progress."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        own = organizations_for(request, self.write_permission)
        form = ImportForm(self.file_columns, own, request.POST or None, request.FILES or None)
        if form.is_valid() and (run := self._start(request, form)):
            return HttpResponseRedirect(self._url("import", run.pk))
        return self._show(request, "import_new", title=f"Import {self.file_noun}", form=form)

    def _start(self, request: HttpRequest, form: ImportForm) -> FileImport | None:
        file, organization = form.cleaned_data["file"], form.cleaned_data["organization"]
        try:
            run: FileImport = self.start_import(
                organization.pk, file.name, file, request.user.get_username()
            )
        except csv_lines.Unreadable as error:
            form.add_error("file", str(error))
            return None
        if run.state != FileImport.State.RUNNING:
            self.note(request, run, f"file of {run.rows} rows uploaded", audit.Action.IMPORTED)
            return run
        self.note(request, run, f"{run.rows} rows started", audit.Action.IMPORTED)
        self.request_import()
        return run

    def one_import(self, request: HttpRequest, run_id: object) -> HttpResponse:
        """Return the page with an import's progress; a POST cancels it."""
        run = get_object_or_404(self._runs(request).select_related("organization"), pk=run_id)
        may_cancel = self.may(request, self.write_permission, run)
        if request.method == "POST":
            if not may_cancel:
                raise PermissionDenied
            if self.cancel_import(run):
                self.note(request, run, "cancelled", audit.Action.IMPORTED)
            return HttpResponseRedirect(request.path)
        running = run.state == FileImport.State.RUNNING
        context = {"run": run, "running": running, "may_cancel": may_cancel and running}
        report = self._url("import_report", run.pk)
        return self._show(
            request, "import", title=f"Import of {run.name}", report=report, **context
        )

    def report(self, request: HttpRequest, run_id: object) -> StreamingHttpResponse:
        """Return the rejected rows as a CSV file."""
        run = get_object_or_404(self._runs(request), pk=run_id)
        return csv_file(csv_lines.write_rows(imports.rejected_rows(run)), f"bad-rows-{run.pk}")

    # --- addresses ------------------------------------------------------------------------------
    @property
    def _prefix(self) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}"

    def _url(self, name: str, *args: object) -> str:
        return reverse(f"admin:{self._prefix}_{name}", args=args)

    def _show(self, request: HttpRequest, template: str, **context: object) -> HttpResponse:
        urls = {name: self._url(name) for name in ("new_import", "imports", "changelist")}
        return self.show(request, template, None, urls=urls, noun=self.file_noun, **context)

    def _runs(self, request: HttpRequest) -> QuerySet[Any]:
        rows = self.import_runs()
        if request.user.is_superuser:
            return rows
        return rows.filter(organization_id__in=organizations_of(request, self.read_permission))
