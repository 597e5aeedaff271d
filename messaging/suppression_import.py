"""Importing a file of suppressions: stored in parts, and then worked off part by part.

A part, its counts and its bad rows are one transaction. Whoever is killed leaves the part as it
was, and the next worker does it; a part that ran twice would find its entries there.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models.functions import Now

from messaging import suppression
from messaging.models import SuppressionImport, SuppressionImportPart
from messaging.schemas.suppressions import read_entry
from messaging.suppression_export import COLUMNS, MORE, bare
from rme.core.errors import InvalidPayload
from rme.tenants import organizations

log = structlog.get_logger(__name__)

SOURCE = "IMPORT"
PART_LINES = 5000
ROWS_LIMIT = 1_000_000
BYTES_LIMIT = 100 * 1024 * 1024
LINE_LIMIT = 16 * 1024
"""Bytes of one line: several times what the longest entry needs."""

State = SuppressionImport.State
Problem = tuple[int, str, str]
"""The line in the file, whose first is 1; the field; and why."""

_TURN = f"""
UPDATE {SuppressionImport._meta.db_table} SET turn_at = clock_timestamp() WHERE id = (
  SELECT id FROM {SuppressionImport._meta.db_table} WHERE state = 'RUNNING'
  ORDER BY turn_at LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id
"""


class Unreadable(ValueError):
    """The file as a whole cannot be imported, and nothing of it was."""


# --- storing a file -----------------------------------------------------------------------------
@dataclass(slots=True)
class Reader:
    """Reads a file line by line, and holds no more than a part of it."""

    file: IO[bytes]
    part_lines: int
    line: int = 0
    size: int = 0
    rows: int = 0

    def next(self) -> str | None:
        """Give the next line without its end; None after the last. Raises Unreadable."""
        raw = self.file.readline(LINE_LIMIT + 1)
        if not raw:
            return None
        self.line += 1
        self.size += len(raw)
        if len(raw) > LINE_LIMIT:
            raise Unreadable(f"Line {self.line} is longer than {LINE_LIMIT:,} bytes.")
        if self.size > BYTES_LIMIT:
            raise Unreadable(f"The file is larger than {BYTES_LIMIT // 1024**2} MB.")
        try:
            return raw.decode("utf-8-sig" if self.line == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise Unreadable(f"Line {self.line} is not UTF-8: save the file as such.") from None

    def part(self) -> tuple[int, list[str]]:
        """Give some lines and the number of the first; none after the last."""
        first = self.line + 1
        lines: list[str] = []
        while len(lines) < self.part_lines and (line := self.next()) is not None:
            lines.append(line)
        self.rows += sum(not _blank(line) for line in lines)
        if self.rows > ROWS_LIMIT:
            raise Unreadable(f"The file has more than {ROWS_LIMIT:,} rows.")
        return first, lines


def _blank(line: str) -> bool:
    return not line.strip(",; \t\r")


def start(
    organization_id: str,
    name: str,
    file: IO[bytes],
    started_by: str,
    part_lines: int = PART_LINES,
) -> SuppressionImport:
    """Store a file to be imported, all or nothing. Raises Unreadable."""
    reader = Reader(file, part_lines)
    columns, delimiter = _header(reader.next() or "")
    with transaction.atomic():
        run = SuppressionImport.objects.create(
            organization_id=organization_id,
            name=name[:255],
            columns=columns,
            delimiter=delimiter,
            started_by=started_by,
        )
        number = 0
        while (part := reader.part())[1]:
            first, lines = part
            content = "\n".join(lines).encode()
            run.parts.create(number=number, first_line=first, content=content)
            number += 1
        if not reader.rows:
            raise Unreadable("The file has no rows below its header line.")
        run.rows = reader.rows
        run.save(update_fields=["rows"])
    return run


def _header(line: str) -> tuple[list[str], str]:
    """Read the first line: columns by the names that they have in the API, and the delimiter."""
    delimiter = ";" if line.count(";") > line.count(",") else ","
    known = {name.lower(): name for name in (*COLUMNS, *MORE)}
    try:
        given = [cell.strip() for cell in _cells(line, delimiter)]
    except csv.Error:
        raise Unreadable("The first line has quotes that do not match.") from None
    while given and not given[-1]:
        given.pop()
    unknown = [name for name in given if name.lower() not in known]
    columns = [known[name.lower()] for name in given if name.lower() in known]
    if unknown:
        raise Unreadable(
            f"The first line may name {', '.join(COLUMNS)}; it names {unknown[0]!r:.60}."
        )
    if len(set(columns)) < len(columns):
        raise Unreadable("The first line names a column twice.")
    if "channel" not in columns or not {"address", "contactId"} & set(columns):
        raise Unreadable("The first line must name channel, and one of address and contactId.")
    return columns, delimiter


def _cells(line: str, delimiter: str) -> list[str]:
    """Split a line. Raises csv.Error for quotes that do not match."""
    if '"' not in line:
        return line.split(delimiter)
    return next(csv.reader([line], delimiter=delimiter, strict=True))


# --- working it off -----------------------------------------------------------------------------
@dataclass(slots=True)
class Read:
    """What the rows of a part come to."""

    entries: list[suppression.Entry] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    rejected: int = 0


def work() -> bool:
    """Import one part of the file whose turn it is; say whether there may be more to do.

    One process works at a time, however many are called: imports can wait, messages cannot.
    """
    with connection.cursor() as cursor:
        # Committed by itself: a part that fails does not keep its place in front.
        cursor.execute(_TURN)
        found = cursor.fetchone()
    if found is None:
        return False
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_try_advisory_xact_lock(hashtextextended('suppression_import', 0))"
            )
            (alone,) = cursor.fetchone()
        if alone:
            step(found[0])
    return bool(alone)


def step(run_id: UUID) -> SuppressionImport:
    """Import the next part of a file, if it is running; give how far it has come."""
    with transaction.atomic():
        run = SuppressionImport.objects.select_for_update().get(pk=run_id)
        if run.state != State.RUNNING:
            return run
        part = run.parts.filter(content__isnull=False).earliest("number")
        read = _read(run, part)
        change = suppression.suppress(read.entries)
        part.content, part.problems = None, read.problems
        part.save(update_fields=["content", "problems"])
        run.done += len(read.entries) + read.rejected
        run.added += len(change.added)
        run.replaced += change.replaced
        run.rejected += read.rejected
        counts = ["done", "added", "replaced", "rejected"]
        if run.done >= run.rows:
            run.state, run.finished_at = State.DONE, Now()
            log.info("suppression_import.done", import_id=str(run.pk), rows=run.done)
        run.save(update_fields=[*counts, "state", "finished_at"])
    return run


def _read(run: SuppressionImport, part: SuppressionImportPart) -> Read:
    organization = organizations.get(run.organization_id)
    read = Read()
    for number, line in enumerate(bytes(part.content or b"").decode().split("\n"), part.first_line):
        if _blank(line):
            continue
        try:
            body = _body(line, run.columns, run.delimiter)
            read.entries.append(read_entry(body, organization, SOURCE))
        except InvalidPayload as error:
            read.problems += [(number, each.field, each.message) for each in error.details]
            read.rejected += 1
    return read


def _body(line: str, columns: list[str], delimiter: str) -> dict[str, Any]:
    """Give a row as the body of a call. Raises InvalidPayload."""
    try:
        cells = _cells(line, delimiter)
    except csv.Error:
        # A field may not go on in the next line: one quote too many would swallow the file.
        raise InvalidPayload.at("row", "quotes that do not match") from None
    if any(cells[len(columns) :]):
        raise InvalidPayload.at("row", "more cells than the first line names")
    found = zip(columns, cells, strict=False)
    return {name: text for name, cell in found if (text := bare(cell.strip())) and name not in MORE}


# --- looking after it ---------------------------------------------------------------------------
def cancel(organization_id: str, run_id: UUID) -> bool:
    """End an import; say whether it was running. What was imported stays."""
    with transaction.atomic():
        ended = SuppressionImport.objects.filter(
            organization_id=organization_id, pk=run_id, state=State.RUNNING
        ).update(state=State.CANCELLED, finished_at=Now())
        if ended:
            SuppressionImportPart.objects.filter(run_id=run_id, content__isnull=False).delete()
    return bool(ended)


def report(run: SuppressionImport) -> Iterator[tuple[str, str, str]]:
    """Give the bad rows of a file as a table, as far as it was imported, below a header."""
    yield ("line", "field", "why")
    parts = run.parts.exclude(problems=[]).order_by("number").values_list("problems", flat=True)
    for problems in parts.iterator(chunk_size=10):
        for line, column, why in problems:
            yield str(line), column, why
