"""Records of one kind as CSV, in the form in which they can be imported again."""

from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from typing import Any

from django.db import models

from rme.core.csv_lines import write_rows
from rme.core.db.clock import iso
from rme.crm.records import files
from rme.crm.records.files import COLUMNS, MORE


def export(organization_id: str, model: type[models.Model]) -> Iterator[str]:
    """Give an organization's records in blocks of lines, the oldest first, through a cursor on
    the server.
    """
    columns = [column.column for column in COLUMNS[model]]
    rows = model._default_manager.filter(organization_id=organization_id).order_by("pk")
    found = rows.values_list(*columns, "created_at").iterator(chunk_size=2000)
    cells = ([_cell(value) for value in row] for row in found)
    return write_rows(chain([[*files.names(model), *MORE]], cells))


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case datetime():
            return iso(value) or ""
    return str(value)
