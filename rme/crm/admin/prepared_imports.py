"""The page between the upload of a file of records and its import: columns, matching, dry run."""

from typing import IO, Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldBooleanSwitchWidget

from rme.crm import tasks
from rme.crm.models import Contact, RecordImport
from rme.crm.records import files, import_file
from rme.tenants.admin.imports import FilePages
from rme.tenants.audit import Action

State = RecordImport.State


class ColumnsForm(forms.Form):
    """Which column of the records each column of a file is, and how rows are matched."""

    by_email = forms.BooleanField(
        label="Match by email",
        required=False,
        widget=UnfoldBooleanSwitchWidget(),
        help_text="A row changes the contact who has its email; without one it adds a contact. "
        "Empty cells change nothing then.",
    )

    def __init__(self, run: RecordImport, *args: object) -> None:
        super().__init__(*args)
        self.model = files.KINDS[run.kind]
        self.titles = run.columns
        known = {name.lower(): name for name in files.names(self.model)}
        choices = [("", "Leave out"), *((name, name) for name in known.values())]
        samples = import_file.sample(run)
        for index, title in enumerate(self.titles):
            shown = [row[index] for row in samples if index < len(row) and row[index]]
            self.fields[f"column_{index}"] = forms.ChoiceField(
                label=title or f"Column {index + 1}",
                choices=choices,
                required=False,
                initial=known.get(title.lower().replace(" ", "").replace("_", ""), ""),
                widget=UnfoldAdminSelectWidget(),
                help_text=f"Such as: {', '.join(shown)}"[:200] if shown else "",
            )
        if self.model is not Contact:
            del self.fields["by_email"]
        else:
            self.order_fields([*(name for name in self.fields if name != "by_email"), "by_email"])

    @property
    def columns(self) -> list[str]:
        """Return the name of each column, "" for those left out."""
        return [self.cleaned_data[f"column_{index}"] for index in range(len(self.titles))]

    def clean(self) -> dict[str, Any]:
        """Check that records can be made of the chosen columns."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors:
            by_email = given.get("by_email", False)
            if problem := import_file.problem_of(self.model, self.columns, by_email=by_email):
                raise forms.ValidationError(problem)
        return given


class PreparedImports(FilePages):
    """A list of records: a file waits after its upload until its columns are chosen."""

    def start_import(
        self, organization_id: str, name: str, file: IO[bytes], by: str
    ) -> RecordImport:
        return import_file.prepare(organization_id, self.model, name, file, started_by=by)

    def one_import(self, request: HttpRequest, run_id: object) -> HttpResponse:
        """Return the page of an import: its columns, its progress, or what its dry run found."""
        run = get_object_or_404(self._runs(request).select_related("organization"), pk=run_id)
        tried = run.state == State.DONE and run.dry_run
        if run.state != State.PREPARED and not tried:
            return super().one_import(request, run_id)
        if not self.may(request, self.write_permission, run):
            raise PermissionDenied
        form = ColumnsForm(run, request.POST or None) if run.state == State.PREPARED else None
        if request.method == "POST" and self._done(request, run, form):
            return HttpResponseRedirect(request.path)
        context = {"run": run, "form": form, "report": self._url("import_report", run.pk)}
        template = "import_columns" if form else "import_tried"
        return self._show(request, template, title=f"Import of {run.name}", **context)

    def _done(self, request: HttpRequest, run: RecordImport, form: ColumnsForm | None) -> bool:
        """Do what the person chose; return whether it could be done."""
        chosen = request.POST.get("do")
        if chosen == "discard":
            import_file.discard(run)
            self.note(request, run, "discarded", Action.IMPORTED)
            return True
        if form is None:
            import_file.import_checked(run)
            self.note(request, run, f"{run.rows} rows started", Action.IMPORTED)
        elif form.is_valid():
            dry_run = chosen != "import"
            by_email = form.cleaned_data.get("by_email", False)
            import_file.begin(run, form.columns, by_email=by_email, dry_run=dry_run)
            kind = "dry run of " if dry_run else ""
            self.note(request, run, f"{kind}{run.rows} rows started", Action.IMPORTED)
        else:
            return False
        tasks.request_import()
        return True
