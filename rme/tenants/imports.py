"""Importing a file into an organization: stored in parts, and then worked off part by part.

A part, its counts and its bad rows are one transaction. Whoever is killed leaves the part as it
was, and the next worker does it; what is imported must be such that a part may run twice.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import structlog
from django.db import connection, models, transaction
from django.db.models.functions import Now

from rme.core import ids
from rme.core.csv_lines import Reader, Unreadable, is_blank
from rme.tenants.models import Organization

log = structlog.get_logger(__name__)

Problem = tuple[int, str, str]
"""The line in the file, whose first is 1; the field; and why."""


class FileImport(models.Model):
    """One file that is imported, and how far it has come. All counts are of rows."""

    class State(models.TextChoices):
        RUNNING = "RUNNING", "Running"
        DONE = "DONE", "Done"
        CANCELLED = "CANCELLED", "Cancelled"

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE)
    name = models.CharField(max_length=255)
    columns = models.JSONField(default=list)
    delimiter = models.CharField(max_length=1, default=",")
    state = models.CharField(max_length=10, choices=State.choices, default=State.RUNNING)
    rows = models.PositiveIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    added = models.PositiveIntegerField(default=0)
    replaced = models.PositiveIntegerField(default=0)
    rejected = models.PositiveIntegerField(default=0)
    started_by = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    turn_at = models.DateTimeField(db_default=Now(), editable=False)
    """When it was last its turn: whoever waits longest comes next."""
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name

    @property
    def unchanged(self) -> int:
        """Rows that changed nothing."""
        return self.done - self.added - self.replaced - self.rejected


class FilePart(models.Model):
    """Some lines of a file. What was imported keeps its bad rows alone."""

    number = models.PositiveIntegerField()
    first_line = models.PositiveIntegerField()
    content = models.BinaryField(null=True)
    problems = models.JSONField(default=list)
    """Shape: `[[line, field, why], …]`."""

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"part {self.number}"


@dataclass(slots=True)
class PartResult:
    """What became of the rows of a part. `rows` counts them all, bad ones among them."""

    rows: int = 0
    added: int = 0
    replaced: int = 0
    rejected: int = 0
    problems: list[Problem] = field(default_factory=list)

    def reject(self, line: int, *found: tuple[str, str]) -> None:
        """Note what is wrong with a row: fields, each with why."""
        self.problems += [(line, name, why) for name, why in found]
        self.rejected += 1


Rows = list[tuple[int, str]]
"""The rows of a part, each with the number of its line."""
Read = Callable[[Any, Rows], Any]
"""Reads the rows of a part of a run; no transaction is open, so that it may ask elsewhere."""
Apply = Callable[[Any, Any], PartResult]
"""Imports what was read of a part of a run, in a transaction that is open."""


# --- storing a file -----------------------------------------------------------------------------
def store(run: Any, reader: Reader) -> None:
    """Store a run and what is left of its file, all or nothing. Raises Unreadable."""
    with transaction.atomic():
        run.name = run.name[:255]
        run.save()
        number = 0
        while (part := reader.read_batch())[1]:
            first, lines = part
            content = "\n".join(lines).encode()
            run.parts.create(number=number, first_line=first, content=content)
            number += 1
        if not reader.rows:
            raise Unreadable("The file has no rows below its header line.")
        run.rows = reader.rows
        run.save(update_fields=["rows"])


# --- working it off -----------------------------------------------------------------------------
def rows_alone(run: Any, lines: Rows) -> Rows:
    """Return the rows as they are: for an import that needs nothing from elsewhere."""
    return lines


def import_next_part(runs: type[FileImport], take: Apply, read: Read = rows_alone) -> bool:
    """Import one part of the file whose turn it is; say whether there may be more to do.

    One process works at a time, however many are called: imports can wait, messages cannot.
    """
    table = runs._meta.db_table
    with connection.cursor() as cursor:
        # Committed by itself: a part that fails does not keep its place in front.
        cursor.execute(
            f"UPDATE {table} SET turn_at = clock_timestamp() WHERE id = ("
            f"SELECT id FROM {table} WHERE state = 'RUNNING' "
            "ORDER BY turn_at LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"
        )
        found = cursor.fetchone()
    if found is None:
        return False
    number, rows = _next(runs, found[0], read)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", [table])
            (alone,) = cursor.fetchone()
        if alone:
            _import(runs, found[0], take, number, rows)
    return bool(alone)


def import_part_of(runs: Any, run_id: UUID, take: Apply, read: Read = rows_alone) -> Any:
    """Import the next part of a file, if it is running; give how far it has come."""
    return _import(runs, run_id, take, *_next(runs, run_id, read))


def _next(runs: Any, run_id: UUID, read: Read) -> tuple[int, Any]:
    """Read the next part of a file; return its number, and what was read."""
    run = runs.objects.get(pk=run_id)
    part = run.parts.filter(content__isnull=False).order_by("number").first()
    return (part.number, read(run, _lines(part))) if part else (-1, None)


def _import(runs: Any, run_id: UUID, take: Apply, number: int, rows: Any) -> Any:
    """Import a part that was read, if it still is the next."""
    with transaction.atomic():
        run = runs.objects.select_for_update().get(pk=run_id)
        part = run.parts.filter(content__isnull=False).defer("content").order_by("number").first()
        running = run.state == FileImport.State.RUNNING
        if not running or part is None or part.number != number:
            return run
        outcome = take(run, rows)
        part.content, part.problems = None, outcome.problems
        part.save(update_fields=["content", "problems"])
        for name in ("added", "replaced", "rejected"):
            setattr(run, name, getattr(run, name) + getattr(outcome, name))
        run.done += outcome.rows
        if run.done >= run.rows:
            run.state, run.finished_at = FileImport.State.DONE, Now()
            log.info("import.done", kind=runs._meta.label, import_id=str(run.pk), rows=run.done)
        counts = ["done", "added", "replaced", "rejected"]
        run.save(update_fields=[*counts, "state", "finished_at"])
    return run


def _lines(part: Any) -> Rows:
    texts = bytes(part.content or b"").decode().split("\n")
    return [
        (number, line) for number, line in enumerate(texts, part.first_line) if not is_blank(line)
    ]


# --- looking after it ---------------------------------------------------------------------------
def cancel(runs: Any, organization_id: str, run_id: UUID) -> bool:
    """End an import; say whether it was running. What was imported stays."""
    state = FileImport.State
    with transaction.atomic():
        running = runs.objects.filter(
            organization_id=organization_id, pk=run_id, state=state.RUNNING
        )
        ended = running.update(state=state.CANCELLED, finished_at=Now())
        if ended:
            runs(pk=run_id).parts.filter(content__isnull=False).delete()
    return bool(ended)


def rejected_rows(run: Any) -> Iterator[tuple[str, str, str]]:
    """Give the bad rows of a file as a table, as far as it was imported, below a header."""
    yield ("line", "field", "why")
    parts = run.parts.exclude(problems=[]).order_by("number").values_list("problems", flat=True)
    for problems in parts.iterator(chunk_size=10):
        for line, column, why in problems:
            yield str(line), column, why
