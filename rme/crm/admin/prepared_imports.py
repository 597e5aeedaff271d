"""Imports of records: their columns, and how rows are matched."""

from collections.abc import Callable
from functools import partial

from django import forms

from rme.core.addresses import Digits
from rme.crm.models import Contact, RecordImport
from rme.crm.records import files, import_file
from rme.tenants import organizations
from rme.tenants.imports import FileImport, pages
from rme.tenants.imports.pages import PreparedPages


class ContactColumnsForm(pages.ColumnsForm):
    """Which column of the records each column of a file is, and how rows are matched."""

    by_email = forms.BooleanField(
        label="Match by email",
        required=False,
        help_text="A row changes the contact who has its email; without one it adds a contact. "
        "Empty cells change nothing then.",
    )

    def __init__(self, run: RecordImport, data: pages.Data) -> None:
        self.model = files.KINDS[run.kind]
        super().__init__(run, files.names(self.model), data, has_phones=self.model is Contact)
        if self.model is not Contact:
            del self.fields["by_email"]
        else:
            self.fields["by_email"].initial = run.by_email
            self.order_fields([*(name for name in self.fields if name != "by_email"), "by_email"])

    @property
    def options(self) -> dict[str, object]:
        return {**super().options, "by_email": self.cleaned_data.get("by_email", False)}

    def problem(self) -> str:
        by_email = bool(self.options["by_email"])
        return super().problem() or import_file.problem_of(
            self.model, self.columns, by_email=by_email
        )


class PreparedImports(PreparedPages):
    """A list of records: a file waits after its upload until its columns are chosen."""

    columns_form = ContactColumnsForm

    def import_work(self, organization_id: str, name: str, by: str) -> Callable[..., FileImport]:
        return partial(import_file.prepare, organization_id, self.model, name, started_by=by)

    def optional_columns(self, run: FileImport) -> frozenset[str]:
        columns = files.COLUMNS[self.model]
        return frozenset(each.name for each in columns if not each.required and each.name != "id")

    def cell_problem(self, run: FileImport, column: str, cell: str) -> str:
        readers = {each.name: each.read for each in files.COLUMNS[self.model]}
        region = organizations.get(run.organization_id).region
        try:
            readers[column](cell, files.NumberRules(region, Digits(run.digits)))
        except ValueError as error:
            return str(error)
        return ""
