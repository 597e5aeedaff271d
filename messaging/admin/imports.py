"""Pages of the suppression list for files: importing with progress and report, and exporting."""

from typing import Any, ClassVar

from django import forms
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.urls import path, reverse
from unfold.decorators import action
from unfold.widgets import UnfoldAdminSelectWidget

from messaging import suppression_export, suppression_import, tasks
from messaging.models import SuppressionImport
from rme.tenants.admin_base import TenantAdmin, organizations_for, organizations_of
from rme.tenants.models import Organization

SHOWN = 50
"""How many imports the list shows, newest first."""
LIST = "admin:messaging_suppression_imports"
PAGE = "admin:messaging_suppression_import"


class OrganizationForm(forms.Form):
    """Whose list is meant. Whoever has one organization finds it chosen."""

    organization = forms.ModelChoiceField(Organization.objects, widget=UnfoldAdminSelectWidget)

    def __init__(self, own: QuerySet[Organization], *args: Any) -> None:
        super().__init__(*args)
        field: Any = self.fields["organization"]
        field.queryset = own
        first = list(own[:2])
        field.initial = first[0] if len(first) == 1 else None


class ImportForm(OrganizationForm):
    """A file for a list."""

    file = forms.FileField(
        widget=forms.FileInput(attrs={"accept": ".csv,text/csv"}),
        help_text="CSV in UTF-8, at most 100 MB and a million rows. The first line names the "
        f"columns: {', '.join(suppression_export.COLUMNS)}.",
    )


class ImportPages(TenantAdmin):
    """What the page of the suppressions has besides its rows."""

    actions_list: ClassVar[list[str]] = ["imports", "export"]

    def get_urls(self) -> list[Any]:
        pages = [
            ("imports/new/", self.new_import, "new_import"),
            ("imports/<uuid:run_id>/", self.one_import, "import"),
            ("imports/<uuid:run_id>/report/", self.report, "import_report"),
        ]
        ours = [
            path(route, self.admin_site.admin_view(view), name=f"messaging_suppression_{name}")
            for route, view, name in pages
        ]
        return ours + super().get_urls()

    @action(description="Imports", url_path="imports", permissions=["view"])
    def imports(self, request: HttpRequest) -> HttpResponse:
        """List the imports of a person's organizations."""
        runs = self._runs(request).select_related("organization").order_by("-pk")[:SHOWN]
        context = {"runs": runs, "may_add": self.has_add_permission(request)}
        return self.show(request, "import_list", None, title="Imports", **context)

    @action(description="Export", url_path="export", permissions=["view"])
    def export(self, request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
        """Give an organization's list as a file."""
        form = OrganizationForm(organizations_for(request, self.readers), request.POST or None)
        if not form.is_valid():
            context = {"question": "The list leaves as a CSV file.", "form": form}
            return self.show(request, "ask", None, title="Export", **context)
        organization = form.cleaned_data["organization"]
        self.note(request, organization, "Exported the suppressions")
        return _file(suppression_export.export(organization.pk), f"suppressions-{organization.pk}")

    def new_import(self, request: HttpRequest) -> HttpResponse:
        """Take a file, and go to the page that shows how far it has come."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        own = organizations_for(request, self.writers)
        form = ImportForm(own, request.POST or None, request.FILES or None)
        if form.is_valid() and (run := self._start(request, form)):
            return HttpResponseRedirect(reverse(PAGE, args=[run.pk]))
        return self.show(request, "import_new", None, title="Import suppressions", form=form)

    def _start(self, request: HttpRequest, form: ImportForm) -> SuppressionImport | None:
        file, organization = form.cleaned_data["file"], form.cleaned_data["organization"]
        by = request.user.get_username()
        try:
            run = suppression_import.start(organization.pk, file.name, file, by)
        except suppression_import.Unreadable as error:
            form.add_error("file", str(error))
            return None
        self.note(request, run, f"Import of {run.rows} rows started")
        tasks.ring_import()
        return run

    def one_import(self, request: HttpRequest, run_id: Any) -> HttpResponse:
        """Show how far an import has come; a POST ends it."""
        run = get_object_or_404(self._runs(request).select_related("organization"), pk=run_id)
        may_cancel = self.may(request, self.writers, run)
        if request.method == "POST":
            if not may_cancel:
                raise PermissionDenied
            if suppression_import.cancel(run.organization_id, run.pk):
                self.note(request, run, "Import cancelled")
            return HttpResponseRedirect(request.path)
        running = run.state == SuppressionImport.State.RUNNING
        context = {"run": run, "running": running, "may_cancel": may_cancel and running}
        return self.show(request, "import", None, title=f"Import of {run.name}", **context)

    def report(self, request: HttpRequest, run_id: Any) -> StreamingHttpResponse:
        """Give the bad rows as a file."""
        run = get_object_or_404(self._runs(request), pk=run_id)
        rows = suppression_import.report(run)
        return _file(suppression_export.lines(rows), f"bad-rows-{run.pk}")

    def _runs(self, request: HttpRequest) -> QuerySet[SuppressionImport]:
        rows = SuppressionImport.objects.all()
        if request.user.is_superuser:
            return rows
        return rows.filter(organization_id__in=organizations_of(request, self.readers))


def _file(lines: Any, name: str) -> StreamingHttpResponse:
    response = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    response["Cache-Control"] = "no-store"
    return response
