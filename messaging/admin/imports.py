"""Import and export of the suppression list, for its page."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget

from messaging.consent import suppression_export, suppression_import, tasks
from messaging.console import wording
from messaging.domain.channels import Channel
from messaging.models import Suppression, SuppressionImport
from rme.core.addresses import Digits
from rme.tenants import organizations
from rme.tenants.imports import FileImport, guessing
from rme.tenants.imports.columns_form import ColumnsForm, Data
from rme.tenants.imports.mend_form import CellProblem
from rme.tenants.imports.pages import FilePages


class SuppressionColumnsForm(ColumnsForm):
    """Which column of the list each column of a file is."""

    def __init__(self, run: SuppressionImport, data: Data, problem: CellProblem) -> None:
        super().__init__(run, suppression_export.COLUMNS, data, problem, has_phones=True)

    def fixed_fields(self) -> Mapping[str, forms.Field]:
        channels = wording.channels(with_all=True).items()
        return {
            "channel": _choice([*channels], initial=self._guessed_channel()),
            "reason": _choice(Suppression.Reason.choices),
            "note": forms.CharField(max_length=500),
        }

    def _guessed_channel(self) -> str:
        """Return the channel that fits all addresses of the first rows; empty if none does."""
        if "channel" in self.guesses or "address" not in self.guesses:
            return ""
        names = guessing.by_content(self.cells_of(self.guesses.index("address")))
        return next((CHANNELS[name] for name in names if name in CHANNELS), "")

    def problem(self) -> str:
        return super().problem() or suppression_import.problem_of([*self.columns, *self.fixed])


CHANNELS = {"email": Channel.EMAIL.value, "mobile": Channel.SMS.value}


def _choice(choices: list[tuple[str, Any]], initial: str = "") -> forms.ChoiceField:
    return forms.ChoiceField(
        choices=[("", _("None")), *choices], initial=initial, widget=UnfoldAdminSelectWidget()
    )


class ImportPages(FilePages):
    """The list of imports, with their columns and dry runs, and upload and download of files."""

    columns_form = SuppressionColumnsForm
    file_columns = suppression_export.COLUMNS
    file_noun = gettext_lazy("suppressions")

    def import_runs(self) -> QuerySet[SuppressionImport]:
        return SuppressionImport.objects.all()

    def import_work(self, organization_id: str, name: str, by: str) -> Callable[..., FileImport]:
        return partial(suppression_import.prepare, organization_id, name, started_by=by)

    def optional_columns(self, run: FileImport) -> frozenset[str]:
        return frozenset({"reason", "note", "expiresAt"})

    def cell_problem(self, run: FileImport, column: str, cell: str) -> str:
        organization = organizations.get(run.organization_id)
        return suppression_import.cell_problem(column, cell, organization, Digits(run.digits))

    def request_import(self) -> None:
        tasks.request_import()

    def export_work(self, organization_id: str) -> tuple[Any, ...]:
        return suppression_export.export, organization_id
