"""Import and export of the suppression list, for its page."""

from typing import IO, Any

from django.db.models import QuerySet

from messaging.consent import suppression_export, suppression_import, tasks
from messaging.models import SuppressionImport
from rme.tenants.admin import prepared_imports
from rme.tenants.admin.prepared_imports import PreparedPages


class SuppressionColumnsForm(prepared_imports.ColumnsForm):
    """Which column of the list each column of a file is."""

    def __init__(self, run: SuppressionImport, data: prepared_imports.Data) -> None:
        super().__init__(run, suppression_export.COLUMNS, data)

    def problem(self) -> str:
        return super().problem() or suppression_import.problem_of(self.columns)


class ImportPages(PreparedPages):
    """The list of imports, with their columns and dry runs, and upload and download of files."""

    columns_form = SuppressionColumnsForm
    file_columns = suppression_export.COLUMNS
    file_noun = "suppressions"

    def import_runs(self) -> QuerySet[SuppressionImport]:
        return SuppressionImport.objects.all()

    def start_import(self, organization_id: str, name: str, file: IO[bytes], by: str) -> object:
        return suppression_import.prepare(organization_id, name, file, by)

    def request_import(self) -> None:
        tasks.request_import()

    def export_lines(self, organization_id: str) -> Any:
        return suppression_export.export(organization_id)
