"""The consent ledger as a file, with all that a third party needs to verify the chain."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain

import orjson

from messaging.models import ConsentEntry
from rme.core.csv_lines import write_rows

COLUMNS = (
    "id", "contactId", "channel", "category", "status", "source", "evidence", "occurredAt",
    "recordedAt", "recordedBy", "previous", "digest",
)  # fmt: skip
ROWS = 2000
"""The rows that are in memory at once."""


def csv(organization_id: str) -> Iterator[str]:
    """Return the ledger as CSV in blocks of lines, oldest first; the evidence is JSON in a cell."""
    cells = (
        [each if isinstance(each, str) else _text(each) for each in _values(entry)]
        for entry in _entries(organization_id)
    )
    return write_rows(chain([COLUMNS], cells))


def json_lines(organization_id: str) -> Iterator[bytes]:
    """Return the ledger as JSON, one entry a line, oldest first."""
    for entry in _entries(organization_id):
        pairs = dict(zip(COLUMNS, _values(entry), strict=True))
        yield orjson.dumps(pairs, option=orjson.OPT_APPEND_NEWLINE)


def _entries(organization_id: str) -> Iterator[ConsentEntry]:
    """Yield the entries, read through a cursor on the server."""
    rows = ConsentEntry.objects.filter(organization_id=organization_id).order_by("pk")
    return rows.iterator(chunk_size=ROWS)


def _values(entry: ConsentEntry) -> tuple[object, ...]:
    return (
        str(entry.pk), entry.contact_id, entry.channel, entry.category, entry.status, entry.source,
        entry.evidence, _moment(entry.occurred_at), _moment(entry.recorded_at), entry.recorded_by,
        entry.previous, entry.digest,
    )  # fmt: skip


def _moment(at: datetime) -> str:
    """Return a time as the digest covers it, with microseconds."""
    return orjson.dumps(at.astimezone(UTC), option=orjson.OPT_UTC_Z).decode().strip('"')


def _text(value: object) -> str:
    return orjson.dumps(value).decode()
