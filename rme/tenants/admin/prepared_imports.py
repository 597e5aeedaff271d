"""The page between the upload of a file and its import: columns and dry run."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from unfold.widgets import UnfoldAdminSelectWidget

from rme.tenants import prepared_imports
from rme.tenants.admin.imports import FilePages
from rme.tenants.audit import Action
from rme.tenants.prepared_imports import PreparedImport

State = PreparedImport.State
Data = Mapping[str, Any] | None
"""What was posted."""


class ColumnsForm(forms.Form):
    """Which column of the list each column of a file is. A subclass knows the list's columns."""

    def __init__(self, run: PreparedImport, names: Iterable[str], data: Data) -> None:
        super().__init__(data)
        self.titles = run.columns
        known = {name.lower(): name for name in names}
        choices = [("", "Leave out"), *((name, name) for name in known.values())]
        samples = prepared_imports.sample(run)
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

    @property
    def columns(self) -> list[str]:
        """Return the name of each column, "" for those left out."""
        return [self.cleaned_data[f"column_{index}"] for index in range(len(self.titles))]

    @property
    def options(self) -> dict[str, object]:
        """Return the fields of the run that were chosen besides."""
        return {}

    def problem(self) -> str:
        """Return why the file cannot be imported as chosen, or an empty text."""
        return prepared_imports.named_twice(self.columns)

    def clean(self) -> dict[str, Any]:
        """Check that rows can be made of the chosen columns."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors and (problem := self.problem()):
            raise forms.ValidationError(problem)
        return given


class PreparedPages(FilePages):
    """A list whose files wait after their upload until their columns are chosen."""

    columns_form: Any
    """The class of the form, which is made of a run and what was posted."""

    def one_import(self, request: HttpRequest, run_id: object) -> HttpResponse:
        """Return the page of an import: its columns, its progress, or what its dry run found."""
        run = get_object_or_404(self._runs(request).select_related("organization"), pk=run_id)
        tried = run.state == State.DONE and run.dry_run
        if run.state != State.PREPARED and not tried:
            return super().one_import(request, run_id)
        if not self.may(request, self.write_permission, run):
            raise PermissionDenied
        form = None if tried else self.columns_form(run, request.POST or None)
        if request.method == "POST" and self._done(request, run, form):
            return HttpResponseRedirect(request.path)
        context = {"run": run, "form": form, "report": self._url("import_report", run.pk)}
        template = "import_columns" if form else "import_tried"
        return self._show(request, template, title=f"Import of {run.name}", **context)

    def _done(self, request: HttpRequest, run: PreparedImport, form: ColumnsForm | None) -> bool:
        """Do what the person chose; return whether it could be done."""
        chosen = request.POST.get("do")
        if chosen == "discard":
            prepared_imports.discard(run)
            self.note(request, run, "discarded", Action.IMPORTED)
            return True
        if form is None:
            prepared_imports.import_checked(run)
            self.note(request, run, f"{run.rows} rows started", Action.IMPORTED)
        elif form.is_valid():
            dry_run = chosen != "import"
            prepared_imports.begin(run, form.columns, dry_run=dry_run, **form.options)
            kind = "dry run of " if dry_run else ""
            self.note(request, run, f"{kind}{run.rows} rows started", Action.IMPORTED)
        else:
            return False
        self.request_import()
        return True
