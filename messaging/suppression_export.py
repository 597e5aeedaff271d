"""The suppression list as CSV, in the form in which it can be imported again."""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from messaging.suppression import current
from rme.core.clock import iso

COLUMNS = ("channel", "address", "contactId", "reason", "note", "expiresAt")
"""What an import takes."""
MORE = ("source", "createdAt")
"""What an export tells besides, and an import passes over."""
BLOCK = 32 * 1024

# Spreadsheets take a cell that begins so for a formula (OWASP, CSV Injection). Every E.164 number
# does. A quote in front makes it text; one that stood there already gets another, so that exactly
# one can be taken away again.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def guard(cell: str) -> str:
    """Make a cell one that no spreadsheet computes."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def bare(cell: str) -> str:
    """Give the cell that was guarded."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def lines(rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Write rows as CSV (RFC 4180), some hundred a block, each in a line of its own whatever
    stands in it.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    for row in rows:
        writer.writerow([guard(" ".join(cell.splitlines())) for cell in row])
        if buffer.tell() > BLOCK:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def export(organization_id: str) -> Iterator[str]:
    """Give the list in blocks of lines, the oldest first, through a cursor on the server."""
    columns = ("channel", "address", "contact_id", "reason", "note", "expires_at")
    entries = current(organization_id).order_by("pk").values_list(*columns, "source", "created_at")
    cells = (
        (*texts, iso(expires_at) or "", source, iso(created_at) or "")
        for *texts, expires_at, source, created_at in entries.iterator(chunk_size=5000)
    )
    return lines(chain([(*COLUMNS, *MORE)], cells))
