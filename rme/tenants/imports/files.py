"""Import of a file into an organization: stored in parts, then imported part by part.

A part, its counts and its rejected rows are stored in one transaction. If a worker is killed, the
part stays as it was and the next worker imports it, so importing a part must be idempotent.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils.translation import gettext

from rme.core import csv_lines
from rme.core.csv_lines import Reader, Unreadable, is_blank, numbered_records, write_rows
from rme.core.db.due import next_turn
from rme.tenants.imports import mending
from rme.tenants.models import FileImport, FilePart

log = structlog.get_logger(__name__)


class RowProblem(NamedTuple):
    """A reason why a row is rejected. `line` is its number in the file, from 1."""

    line: int
    field: str
    reason: str


class FileRow(NamedTuple):
    """A row of a file that is not parsed yet. `line` is the number of its first line, from 1."""

    line: int
    text: str


Rows = list[FileRow]


@dataclass(slots=True)
class PartResult:
    """The result of importing a part. `rows` counts all its rows, rejected ones included."""

    rows: int = 0
    added: int = 0
    replaced: int = 0
    rejected: int = 0
    problems: list[RowProblem] = field(default_factory=list)

    def reject(self, line: int, *problems: tuple[str, str]) -> None:
        """Count a row as rejected, for these fields and reasons."""
        self.problems += [RowProblem(line, name, reason) for name, reason in problems]
        self.rejected += 1


Read = Callable[[Any, Rows], Any]
"""Parses the rows of a part of a run. No transaction is open, so it may call other systems."""
Apply = Callable[[Any, Any], PartResult]
"""Imports the parsed rows of a part of a run, in an open transaction."""


# --- storing a file -----------------------------------------------------------------------------
def store(run: Any, reader: Reader) -> None:
    """Store a run and the rest of its file, completely or not at all. Raise Unreadable."""
    with transaction.atomic():
        run.name = run.name[:255]
        run.save()
        for number in itertools.count():
            first, records = reader.read_batch()
            if not records:
                break
            content = "\n".join(records).encode()
            run.parts.create(number=number, first_line=first, content=content)
        if not reader.rows:
            raise Unreadable(gettext("The file has no rows below its header line."))
        run.rows, run.encoding = reader.rows, reader.encoding
        run.save(update_fields=["rows", "encoding"])


# --- importing its parts ------------------------------------------------------------------------
def unparsed(run: object, rows: Rows) -> Rows:
    """Return the rows unchanged: for an import that calls no other system."""
    return rows


def import_next_part(runs: type[FileImport], take: Apply, read: Read = unparsed) -> bool:
    """Import one part of the file that has waited longest; return whether more may be waiting.

    One process imports at a time: imports can wait, messages cannot.
    """
    run_id = next_turn(runs)
    if run_id is None:
        return False
    number, rows = _next(runs, run_id, read)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", [runs._meta.db_table]
            )
            (has_lock,) = cursor.fetchone()
        if has_lock:
            _import(runs, run_id, take, number, rows)
    return bool(has_lock)


def import_part_of(runs: object, run_id: UUID, take: Apply, read: Read = unparsed) -> Any:
    """Import the next part of a run if it is running; return the run."""
    return _import(runs, run_id, take, *_next(runs, run_id, read))


def _next(runs: Any, run_id: UUID, read: Read) -> tuple[int, object]:
    """Return the number of the next part and its parsed rows; -1 if there is none."""
    run = runs.objects.get(pk=run_id)
    part = run.open_parts().order_by("number").first()
    return (part.number, read(run, _rows(part, run))) if part else (-1, None)


def _import(runs: Any, run_id: UUID, take: Apply, number: int, rows: Any) -> object:
    """Import a parsed part if it is still the next one; return the run."""
    with transaction.atomic():
        run = runs.objects.select_for_update().get(pk=run_id)
        part, *later = run.open_parts().defer("content").order_by("number")[:2] or [None]
        running = run.state == FileImport.State.RUNNING
        if not running or part is None or part.number != number:
            return run
        outcome = take(run, rows)
        _close(part, run, outcome)
        for name in ("added", "replaced", "rejected"):
            setattr(run, name, getattr(run, name) + getattr(outcome, name))
        run.done += outcome.rows
        # Not by the count of rows: another release may count those of the same file otherwise.
        if not later:
            run.state, run.finished_at = FileImport.State.DONE, Now()
            log.info("import.done", kind=runs._meta.label, import_id=str(run.pk), rows=run.done)
        counts = ["done", "added", "replaced", "rejected"]
        run.save(update_fields=[*counts, "state", "finished_at"])
    return run


def _close(part: FilePart, run: FileImport, outcome: PartResult) -> None:
    """Store the result of a part. A dry run keeps the mended rows, and the refused cells."""
    problems: list[Any] = list(outcome.problems)
    fields = []
    if run.dry_run:
        records = _records(part, run)
        problems = mending.with_values(problems, records, run.columns, run.delimiter)
        if run.mends:
            part.content = "\n".join(record.text for record in records).encode()
            fields = ["content"]
    part.problems = problems
    part.save(update_fields=["problems", *fields, *run.close_part(part)])


def _rows(part: FilePart, run: FileImport) -> Rows:
    return [row for row in _records(part, run) if not is_blank(row.text)]


def _records(part: FilePart, run: FileImport) -> Rows:
    """Return all records of a part, also blank ones, with the cells that a person mended."""
    text = bytes(part.content or b"").decode()
    lines = numbered_records(text, part.first_line, run.delimiter, run.line_limit)
    rows = [FileRow(number, record) for number, record in lines]
    if run.mends and part.problems:
        return mending.mended(rows, part.problems, run.mends, run.columns, run.delimiter)
    return rows


def cells(run: FileImport, text: str) -> dict[str, str]:
    """Return the cells of a row by column, and the fixed values. Raise ValueError with a reason."""
    return {**run.fixed, **csv_lines.row(text, run.columns, run.delimiter)}


# --- cancelling and reporting -------------------------------------------------------------------
def cancel(runs: Any, organization_id: str, run_id: UUID) -> bool:
    """Cancel an import; return whether it was running. Imported rows stay."""
    state = FileImport.State
    with transaction.atomic():
        running = runs.objects.filter(
            organization_id=organization_id, pk=run_id, state=state.RUNNING
        )
        ended = running.update(state=state.CANCELLED, finished_at=Now())
        if ended:
            runs(pk=run_id).parts.filter(content__isnull=False).delete()
    return bool(ended)


def report(run: Any) -> Iterator[str]:
    """Return the rejected rows of the imported parts as CSV, with a header."""
    return write_rows(rejected_rows(run))


def rejected_rows(run: Any) -> Iterator[tuple[str, str, str]]:
    """Return the rejected rows of the imported parts as a table, with a header."""
    yield ("line", "field", "why")
    parts = run.parts.exclude(problems=[])
    if not run.dry_run:
        parts = parts.filter(content=None)  # the others have what a dry run found
    part_problems = parts.order_by("number").values_list("problems", flat=True)
    for problems in part_problems.iterator(chunk_size=10):
        for line, column, reason, *_ in problems:
            yield str(line), column, reason
