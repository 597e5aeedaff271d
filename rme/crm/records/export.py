"""Export of records of one kind as CSV that can be imported again."""

from collections.abc import Iterator
from datetime import datetime
from itertools import chain

from django.db import models

from rme.core.csv_lines import write_rows
from rme.core.db.clock import iso
from rme.crm.records import files
from rme.crm.records.files import COLUMNS, EXTRA_COLUMNS


def export(organization_id: str, model: type[models.Model]) -> Iterator[str]:
    """Return an organization's records as blocks of CSV lines, the oldest first.

    The rows are read by a server-side cursor.
    """
    columns = [column.column for column in COLUMNS[model]]
    rows = model._default_manager.filter(organization_id=organization_id).order_by("pk")
    values = rows.values_list(*columns, "created_at").iterator(chunk_size=2000)
    cells = ([_cell(value) for value in row] for row in values)
    return write_rows(chain([[*files.names(model), *EXTRA_COLUMNS]], cells))


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case datetime():
            return iso(value) or ""
    return str(value)
