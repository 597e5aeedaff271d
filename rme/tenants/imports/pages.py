"""Admin pages of imports (upload, columns, dry run, progress, report) and exports of a list."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.urls import path, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminFileFieldWidget, UnfoldAdminSelectWidget

from rme.core import csv_lines
from rme.core.http import downloads, edge, uploads
from rme.core.process import admission
from rme.tenants import audit
from rme.tenants.access.roles import organizations_for, organizations_of
from rme.tenants.admin.actions import action
from rme.tenants.admin.base import TenantAdmin
from rme.tenants.imports import files, guessing, mending, prepared
from rme.tenants.imports.columns_form import SAMPLES, ColumnsForm
from rme.tenants.imports.mend_form import MendForm
from rme.tenants.models import FileImport, Organization

State = FileImport.State
OUTDATED = gettext_lazy("The file was checked again in the meantime, so your input wasn't used.")
SHOWN = 50
"""How many imports the list shows, the newest first."""


class OrganizationChoice(forms.Form):
    """A choice of the organization."""

    organization = forms.ModelChoiceField(
        Organization.objects, label=gettext_lazy("Organization"), widget=UnfoldAdminSelectWidget
    )

    def __init__(self, organizations: QuerySet[Organization], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["organization"]
        field.queryset = organizations


class ImportForm(OrganizationChoice):
    """A file to import."""

    file = forms.FileField(
        label=gettext_lazy("File"),
        # the theme's script expects the theme's own markup
        widget=UnfoldAdminFileFieldWidget(attrs={"accept": ".csv,text/csv"}),
    )

    def __init__(self, columns: Sequence[str], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["file"].help_text = _(
            "CSV, at most 100 MB and a million rows. The first line names the columns. The list "
            "has %(columns)s; other names are guessed, and you can change them."
        ) % {"columns": ", ".join(map(guessing.words, columns))}


class FilePages(TenantAdmin):
    """A list with pages for import and export. A subclass defines the file's content.

    An uploaded file is checked at once if its columns can be guessed, or waits until a person has
    chosen them.
    """

    actions_list: ClassVar[list[str]] = ["imports", "export"]
    columns_form: Any
    """The class of the form, which is made of a run, what was posted, and `cell_problem`."""
    file_columns: Sequence[str]
    file_noun: str | Promise
    """A plural noun for the rows of a file."""

    # --- what a subclass implements -------------------------------------------------------------
    def import_runs(self) -> QuerySet[Any]:
        """Return the imports of this list."""
        raise NotImplementedError

    def import_work(self, organization_id: str, name: str, by: str) -> Callable[..., FileImport]:
        """Return a function that stores the `file` to import and returns the run, and that can be
        pickled. It raises Unreadable.
        """
        raise NotImplementedError

    def cancel_import(self, run: Any) -> bool:
        """Cancel an import; return whether it was running."""
        return files.cancel(type(run), run.organization_id, run.pk)

    def optional_columns(self, run: Any) -> frozenset[str]:
        """Return the columns whose cells may be empty."""
        raise NotImplementedError

    def cell_problem(self, run: Any, column: str, cell: str) -> str:
        """Return what is wrong with a cell that a person typed, or an empty text."""
        raise NotImplementedError

    def request_import(self) -> None:
        """Request a worker for the imports."""
        raise NotImplementedError

    def export_work(self, organization_id: str) -> tuple[Any, ...]:
        """Return the function that yields an organization's list as CSV, and its arguments."""
        raise NotImplementedError

    # --- pages ----------------------------------------------------------------------------------
    def upload(self) -> tuple[str, edge.Upload]:
        """Return the name of the route that takes files, and what it takes."""
        return f"admin:{self._prefix}_new_import", edge.Upload(
            self.may_import, csv_lines.BYTES_LIMIT
        )

    def may_import(self, request: HttpRequest) -> bool:
        """Return whether a person may import files, into the list of any organization."""
        return self.may(request, self.write_permission, None)

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
        return [*ours, *super().get_urls()]

    @action(description=gettext_lazy("Imports"), url_path="imports", permissions=["view"])
    def imports(self, request: HttpRequest) -> HttpResponse:
        """Return the list of imports of a person's organizations."""
        runs = list(self._runs(request).select_related("organization").order_by("-pk")[:SHOWN])
        for run in runs:
            run.url = self._url("import", run.pk)
        context = {"runs": runs, "may_add": self.may_import(request)}
        return self._show(request, "import_list", title=_("Imports"), **context)

    @action(description=gettext_lazy("Export"), url_path="export", permissions=["view"])
    def export(self, request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
        """Return an organization's list as a CSV file, after a choice of the organization."""
        organizations = organizations_for(request, self.read_permission)
        own = self.own_organization(request, self.read_permission)
        form = OrganizationChoice(organizations, request.POST or None, initial=own)
        if not form.is_valid():
            context = {"question": _("You get the list as a CSV file."), "form": form}
            return self.show(request, "ask", None, title=_("Export"), **context)
        organization = form.cleaned_data["organization"]
        owners = admission.Owners(organization.pk, str(request.user.pk))
        admission.claim(request.META, owners)
        name = f"{self.file_noun}-{organization.pk}"
        response = downloads.file(request, name, downloads.CSV, *self.export_work(organization.pk))
        self.note(request, organization, str(self.file_noun), audit.Action.EXPORTED)
        return response

    def new_import(self, request: HttpRequest) -> HttpResponse:
        """Store an uploaded file, and redirect to the page with its progress."""
        if not self.may_import(request):
            raise PermissionDenied
        organizations = organizations_for(request, self.write_permission)
        own = self.own_organization(request, self.write_permission)
        data, file = request.POST or None, request.FILES or None
        form = ImportForm(self.file_columns, organizations, data, file, initial=own)
        if form.is_valid() and (run := self._start(request, form)):
            return HttpResponseRedirect(self._url("import", run.pk))
        title = _("Import %(things)s") % {"things": self.file_noun}
        return self._show(request, "import_new", title=title, form=form)

    def _start(self, request: HttpRequest, form: ImportForm) -> FileImport | None:
        file, organization = form.cleaned_data["file"], form.cleaned_data["organization"]
        try:
            work = self.import_work(organization.pk, file.name, request.user.get_username())
            run = uploads.read(request, file, work)
        except csv_lines.Unreadable as error:
            form.add_error("file", str(error))
            return None
        self.note(request, run, f"file of {run.rows} rows uploaded", audit.Action.IMPORTED)
        guessed = self._columns_form(run, None)
        data = {name: field.initial or "" for name, field in guessed.fields.items()}
        self._begin(request, run, self._columns_form(run, data), dry_run=True)
        return run

    def _columns_form(self, run: FileImport, data: Any) -> ColumnsForm:
        form: ColumnsForm = self.columns_form(run, data, partial(self.cell_problem, run))
        return form

    def one_import(self, request: HttpRequest, run_id: object) -> HttpResponse:
        """Return the page of an import: its columns, its progress, or what its dry run found."""
        run = get_object_or_404(self._runs(request).select_related("organization"), pk=run_id)
        is_checked = run.state == State.DONE and run.dry_run
        if run.state != State.PREPARED and not is_checked:
            if "do" in request.POST:  # pressed twice, or on a page from before; Cancel has no `do`
                return HttpResponseRedirect(request.path)
            return self._progress(request, run)
        if not self.may(request, self.write_permission, run):
            raise PermissionDenied
        if request.POST.get("do") == "discard":
            prepared.discard(run)
            self.note(request, run, "discarded", audit.Action.IMPORTED)
            return HttpResponseRedirect(request.path)
        return self._checked(request, run) if is_checked else self._columns(request, run)

    def _progress(self, request: HttpRequest, run: FileImport) -> HttpResponse:
        """Return the page with an import's progress; a POST cancels it."""
        may_cancel = self.may(request, self.write_permission, run)
        if request.method == "POST":
            if not may_cancel:
                raise PermissionDenied
            if self.cancel_import(run):
                self.note(request, run, "cancelled", audit.Action.IMPORTED)
            return HttpResponseRedirect(request.path)
        running = run.state == FileImport.State.RUNNING
        context = {"running": running, "may_cancel": may_cancel and running}
        return self._show_run(request, "import", run, **context)

    def report(self, request: HttpRequest, run_id: object) -> StreamingHttpResponse:
        """Return the rejected rows as a CSV file."""
        run = get_object_or_404(self._runs(request), pk=run_id)
        name = f"bad-rows-{run.pk}"
        return downloads.file(request, name, downloads.CSV, files.report, run)

    def _columns(self, request: HttpRequest, run: FileImport) -> HttpResponse:
        """Return the page on which a person chooses the columns."""
        form = self._columns_form(run, request.POST or None)
        dry_run = request.POST.get("do") != "import"
        if request.method == "POST" and self._begin(request, run, form, dry_run=dry_run):
            return HttpResponseRedirect(request.path)
        heads = [(title, "") for title in form.titles]
        return self._show_run(
            request, "import_columns", run, form=form, heads=heads, sample=form.samples
        )

    def _begin(
        self, request: HttpRequest, run: FileImport, form: ColumnsForm, *, dry_run: bool
    ) -> bool:
        if not form.is_valid():
            return False
        prepared.begin(run, form.columns, dry_run=dry_run, **form.options)
        kind = "dry run of " if dry_run else ""
        self.note(request, run, f"{kind}{run.rows} rows started", audit.Action.IMPORTED)
        self.request_import()
        return True

    def _checked(self, request: HttpRequest, run: FileImport) -> HttpResponse:
        """Return the page with what a dry run found, and with fields for what it refused."""
        do = request.POST.get("do")
        if do == "columns":
            prepared.choose_again(run)
            return HttpResponseRedirect(request.path)
        form = MendForm(
            mending.reasons(run),
            self.optional_columns(run),
            partial(self.cell_problem, run),
            request.POST or None,
        )
        if form.is_outdated:
            self.message_user(request, OUTDATED, messages.ERROR)
            return HttpResponseRedirect(request.path)
        if form.is_valid():
            if do == "again":
                prepared.check_again(run, form.mends)
                self.note(request, run, "checked again", audit.Action.IMPORTED)
            else:
                prepared.import_checked(run, form.mends)
                self.note(request, run, f"{run.rows} rows started", audit.Action.IMPORTED)
            self.request_import()
            return HttpResponseRedirect(request.path)
        titles = run.titles or run.columns
        return self._show_run(
            request,
            "import_tried",
            run,
            form=form,
            heads=[
                (title, guessing.words(name) or _("skipped"))
                for title, name in zip(titles, run.columns, strict=False)
            ],
            fixed=self._columns_form(run, None).fixed_in_words() if run.fixed else [],
            sample=prepared.sample(run, SAMPLES),
        )

    # --- addresses ------------------------------------------------------------------------------
    @property
    def _prefix(self) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}"

    def _url(self, name: str, *args: object) -> str:
        return reverse(f"admin:{self._prefix}_{name}", args=args)

    def _show(self, request: HttpRequest, template: str, **context: object) -> HttpResponse:
        urls = {name: self._url(name) for name in ("new_import", "imports", "changelist")}
        return self.show(request, template, None, urls=urls, noun=self.file_noun, **context)

    def _show_run(
        self, request: HttpRequest, template: str, run: FileImport, **context: object
    ) -> HttpResponse:
        title = _("Import of %(file)s") % {"file": run.name}
        report = self._url("import_report", run.pk)
        return self._show(request, template, title=title, run=run, report=report, **context)

    def _runs(self, request: HttpRequest) -> QuerySet[Any]:
        rows = self.import_runs()
        if request.user.is_superuser:
            return rows
        return rows.filter(organization_id__in=organizations_of(request, self.read_permission))
