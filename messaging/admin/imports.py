"""Import and export of the suppression list, for its page."""

from typing import IO, Any

from django.db.models import QuerySet

from messaging.consent import suppression_export, suppression_import, tasks
from messaging.models import SuppressionImport
from rme.tenants.admin.imports import FilePages


class ImportPages(FilePages):
    """The list of imports, and upload and download of files."""

    file_columns = suppression_export.COLUMNS
    file_noun = "suppressions"

    def import_runs(self) -> QuerySet[SuppressionImport]:
        return SuppressionImport.objects.all()

    def start_import(self, organization_id: str, name: str, file: IO[bytes], by: str) -> object:
        return suppression_import.start(organization_id, name, file, by)

    def request_import(self) -> None:
        tasks.request_import()

    def export_lines(self, organization_id: str) -> Any:
        return suppression_export.export(organization_id)
