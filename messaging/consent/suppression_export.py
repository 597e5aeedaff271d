"""The suppression list as CSV, in the form that an import accepts."""

from collections.abc import Iterator
from itertools import chain

from messaging.consent.suppressions import current
from rme.core.csv_lines import write_rows
from rme.core.db.clock import iso

__all__ = ["COLUMNS", "EXTRA_COLUMNS", "export"]

COLUMNS = ("channel", "address", "contactId", "reason", "note", "expiresAt")
"""Columns that an import reads."""
EXTRA_COLUMNS = ("source", "createdAt")
"""Further columns of an export, which an import ignores."""


def export(organization_id: str) -> Iterator[str]:
    """Return the list in blocks of lines, oldest first, read through a cursor on the server."""
    columns = ("channel", "address", "contact_id", "reason", "note", "expires_at")
    entries = current(organization_id).order_by("pk").values_list(*columns, "source", "created_at")
    cells = (
        (*texts, iso(expires_at) or "", source, iso(created_at) or "")
        for *texts, expires_at, source, created_at in entries.iterator(chunk_size=5000)
    )
    return write_rows(chain([(*COLUMNS, *EXTRA_COLUMNS)], cells))
