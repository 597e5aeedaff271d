"""Import and export of the suppression list, for its page."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.db.models import QuerySet

from messaging.consent import suppression_export, suppression_import, tasks
from messaging.models import SuppressionImport
from rme.tenants.imports import FileImport, pages
from rme.tenants.imports.pages import PreparedPages


class SuppressionColumnsForm(pages.ColumnsForm):
    """Which column of the list each column of a file is."""

    def __init__(self, run: SuppressionImport, data: pages.Data) -> None:
        super().__init__(run, suppression_export.COLUMNS, data, has_phones=True)

    def problem(self) -> str:
        return super().problem() or suppression_import.problem_of(self.columns)


class ImportPages(PreparedPages):
    """The list of imports, with their columns and dry runs, and upload and download of files."""

    columns_form = SuppressionColumnsForm
    file_columns = suppression_export.COLUMNS
    file_noun = "suppressions"

    def import_runs(self) -> QuerySet[SuppressionImport]:
        return SuppressionImport.objects.all()

    def import_work(self, organization_id: str, name: str, by: str) -> Callable[..., FileImport]:
        return partial(suppression_import.prepare, organization_id, name, started_by=by)

    def request_import(self) -> None:
        tasks.request_import()

    def export_work(self, organization_id: str) -> tuple[Any, ...]:
        return suppression_export.export, organization_id
