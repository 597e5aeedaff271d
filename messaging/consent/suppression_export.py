"""The suppression list as CSV, in the form in which it can be imported again."""

from collections.abc import Iterator
from itertools import chain

from messaging.consent.suppressions import current
from rme.core.csv_lines import write_rows
from rme.core.db.clock import iso

__all__ = ["COLUMNS", "MORE", "export"]

COLUMNS = ("channel", "address", "contactId", "reason", "note", "expiresAt")
"""What an import takes."""
MORE = ("source", "createdAt")
"""What an export tells besides, and an import passes over."""


def export(organization_id: str) -> Iterator[str]:
    """Give the list in blocks of lines, the oldest first, through a cursor on the server."""
    columns = ("channel", "address", "contact_id", "reason", "note", "expires_at")
    entries = current(organization_id).order_by("pk").values_list(*columns, "source", "created_at")
    cells = (
        (*texts, iso(expires_at) or "", source, iso(created_at) or "")
        for *texts, expires_at, source, created_at in entries.iterator(chunk_size=5000)
    )
    return write_rows(chain([(*COLUMNS, *MORE)], cells))
