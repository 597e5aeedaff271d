"""Imports of records: their columns, and how rows are matched."""

from collections.abc import Callable, Mapping
from functools import partial

from django import forms
from django.utils.translation import gettext, gettext_lazy

from rme.core import zones
from rme.core.addresses import Digits
from rme.crm.models import Contact, RecordImport
from rme.crm.records import files, import_file
from rme.tenants import organizations
from rme.tenants.admin.offered import LongSelect
from rme.tenants.imports import FileImport
from rme.tenants.imports.columns_form import ColumnsForm, Data
from rme.tenants.imports.mend_form import CellProblem
from rme.tenants.imports.pages import FilePages
from rme.tenants.organizations import OrganizationRecord, languages

_OF_ONE_ROW = frozenset({"id", "firstName", "email", "phone", "mobile", "number"})
"""Columns that no two rows share."""


class RecordColumnsForm(ColumnsForm):
    """Which column of the records each column of a file is, and how rows are matched."""

    by_email = forms.BooleanField(
        label=gettext_lazy("Match by email"),
        required=False,
        help_text=gettext_lazy(
            "A row changes the contact who has its email; without one it adds a contact. "
            "Empty cells change nothing then."
        ),
    )

    def __init__(self, run: RecordImport, data: Data, problem: CellProblem) -> None:
        self.model = files.KINDS[run.kind]
        self.organization = organizations.get(run.organization_id)
        names, has_phones = files.names(self.model), self.model is Contact
        super().__init__(run, names, data, problem, has_phones=has_phones)
        if self.model is not Contact:
            del self.fields["by_email"]
        else:
            self.fields["by_email"].initial = run.by_email
            self.order_fields([*(name for name in self.fields if name != "by_email"), "by_email"])

    def fixed_fields(self) -> Mapping[str, forms.Field]:
        names = [name for name in files.names(self.model) if name not in _OF_ONE_ROW]
        return {name: _fixed_field(name, self.organization) for name in names}

    @property
    def options(self) -> dict[str, object]:
        return {**super().options, "by_email": self.cleaned_data.get("by_email", False)}

    def problem(self) -> str:
        by_email = bool(self.options["by_email"])
        return super().problem() or import_file.problem_of(
            self.model, [*self.columns, *self.fixed], by_email=by_email
        )


def _fixed_field(name: str, organization: OrganizationRecord) -> forms.Field:
    match name:
        case "language":
            choices = languages.offered(organization)
        case "zone":
            choices = [(zone, zone) for zone in zones.choices()]
        case _:
            return forms.CharField(max_length=1000)
    offered = [("", gettext("None")), *choices]
    return forms.ChoiceField(choices=offered, widget=LongSelect({"class": "c-input c-auto"}))


class RecordImports(FilePages):
    """A list of records that can be imported from files."""

    columns_form = RecordColumnsForm

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
