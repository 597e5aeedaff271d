"""Imports whose columns a person chooses: a file waits, is tried by a dry run, and is imported.

A dry run makes all checks and stores nothing; the file is kept for the import after it.
"""

from collections.abc import Sequence
from datetime import timedelta
from itertools import islice
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from rme.core import csv_lines
from rme.core.csv_lines import Reader
from rme.tenants.imports import files, guessing
from rme.tenants.imports.mending import Mends
from rme.tenants.models import FileImport

State = FileImport.State


def prepare(run: FileImport, reader: Reader) -> None:
    """Store a file whose columns a person will choose: `begin` starts it. Raise Unreadable."""
    first = reader.read_header()
    run.titles = run.columns = csv_lines.titles(first, reader.delimiter)
    run.delimiter = reader.delimiter
    run.state = State.PREPARED
    files.store(run, reader)


def sample(run: Any, count: int = 3) -> list[list[str]]:
    """Return the cells of the first rows of a file."""
    part = run.parts.order_by("number").first()
    text = bytes(part.content or b"").decode() if part else ""
    records = csv_lines.numbered_records(text, 1, run.delimiter, run.line_limit)
    filled = (record for _, record in records if record.strip())
    return [csv_lines.sample_cells(record, run.delimiter) for record in islice(filled, count)]


def named_twice(columns: Sequence[str]) -> str:
    """Return why no file can be imported by columns that are chosen twice, or an empty text."""
    used_columns = [column for column in columns if column]
    twice = sorted({column for column in used_columns if used_columns.count(column) > 1})
    if not twice:
        return ""
    text = _("Two columns are %(column)s: choose one of them.")
    return text % {"column": guessing.words(twice[0])}


def begin(run: Any, columns: Sequence[str], *, dry_run: bool, **fields: object) -> bool:
    """Start a prepared file by its columns ("": left out); return whether it was to be started."""
    prepared = type(run).objects.filter(pk=run.pk, state=State.PREPARED)
    return bool(
        prepared.update(
            columns=list(columns), dry_run=dry_run, state=State.RUNNING, turn_at=Now(), **fields
        )
    )


def import_checked(run: Any, mends: Mends | None = None) -> bool:
    """Import a file whose dry run has ended, with the cells that `mends` replaces.

    Return whether that was to be done.
    """
    return _read_again(run, mends, state=State.RUNNING, dry_run=False)


def check_again(run: FileImport, mends: Mends) -> bool:
    """Repeat a dry run with the cells that `mends` replaces; return whether it had ended."""
    return _read_again(run, mends, state=State.RUNNING, dry_run=True)


def choose_again(run: FileImport) -> bool:
    """Let a person choose other columns after a dry run; return whether it had ended."""
    return _read_again(run, None, state=State.PREPARED, dry_run=False)


def _read_again(run: Any, mends: Mends | None, *, state: State, dry_run: bool) -> bool:
    stored_mends = mends.as_json() if mends else []
    with transaction.atomic():
        tried = type(run).objects.filter(pk=run.pk, state=State.DONE, dry_run=True)
        ended = tried.update(
            state=state,
            dry_run=dry_run,
            turn_at=Now(),
            finished_at=None,
            mends=stored_mends,
            **dict.fromkeys(("done", "added", "replaced", "rejected"), 0),
        )
        if ended:
            # The problems say which cells to replace.
            run.parts.update(checked=False, **({} if stored_mends else {"problems": []}))
    return bool(ended)


def discard(run: Any) -> bool:
    """Discard a file that is prepared, or whose dry run has ended; return whether it was."""
    with transaction.atomic():
        pending = type(run).objects.filter(_WAITS, pk=run.pk)
        ended = pending.update(state=State.CANCELLED, finished_at=Now())
        if ended:
            run.parts.all().delete()
    return bool(ended)


_WAITS = Q(state=State.PREPARED) | Q(state=State.DONE, dry_run=True)
WAITS_FOR = timedelta(days=1)


def discard_abandoned(runs: Any) -> int:
    """Discard the files that were not imported within a day; return their number."""
    old = list(runs.objects.filter(_WAITS, turn_at__lt=Now() - WAITS_FOR)[:100])
    return sum(discard(run) for run in old)
