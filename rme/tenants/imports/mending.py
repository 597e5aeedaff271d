"""Mending bad rows without a second upload: values that replace cells which a dry run refused.

The values stand on the run until its parts are read again. `problems` of a part names the rows and
cells that they replace.
"""

import csv
import hashlib
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db import connection

from rme.core import csv_lines
from rme.tenants.imports import guessing

REASONS = 20
"""The most reasons that a page shows."""
VALUES = 8
"""The most values of a reason that a page lets a person replace one by one."""
LONGEST = 200
"""Characters of a refused value that are kept."""
ROW = "row"
"""The column of a problem that concerns the whole row, such as its quotes."""

_REASONS = """
SELECT problem->>1, problem->>2, count(*), count(DISTINCT problem->>3)
FROM {parts}, jsonb_array_elements(problems) AS problem WHERE run_id = %s
GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT %s
"""
_VALUES = """
SELECT * FROM (
  SELECT field, reason, value, times,
    row_number() OVER (PARTITION BY field, reason ORDER BY times DESC, value) AS place
  FROM (
    SELECT problem->>1 AS field, problem->>2 AS reason, problem->>3 AS value, count(*) AS times
    FROM {parts}, jsonb_array_elements(problems) AS problem
    WHERE run_id = %s AND problem->>3 IS NOT NULL GROUP BY 1, 2, 3
  ) AS counted
) AS placed WHERE place <= %s
"""


class Mends(NamedTuple):
    """What replaces refused cells, by column and reason, and by the refused value as well."""

    by_reason: Sequence[tuple[str, str, str]] = ()
    by_value: Sequence[tuple[str, str, str, str]] = ()

    def as_json(self) -> list[object]:
        return [[list(each) for each in group] for group in self] if any(self) else []


@dataclass(slots=True)
class RejectionReason:
    """A reason why rows are rejected, with its rows and its most frequent values."""

    column: str
    text: str
    rows: int
    different: int
    """How many different values there are."""
    values: list[tuple[str, int]] = field(default_factory=list)
    """Values and their rows, the most frequent first."""

    @property
    def label(self) -> str:
        return guessing.words(self.column)

    @property
    def is_of_row(self) -> bool:
        return self.column == ROW


def reasons(run: Any) -> list[RejectionReason]:
    """Return the reasons of a run's rejected rows, the most frequent first; two statements."""
    parts = run.parts.model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(_REASONS.format(parts=parts), [run.pk, REASONS])
        by_key = {(row[0], row[1]): RejectionReason(*row) for row in cursor.fetchall()}
        cursor.execute(_VALUES.format(parts=parts), [run.pk, VALUES])
        for column, text, value, times, _ in cursor.fetchall():
            if reason := by_key.get((column, text)):
                reason.values.append((value, times))
    return list(by_key.values())


def digest(reasons: Sequence[RejectionReason]) -> str:
    """Return a digest of reasons: the fields of a mend form have their numbers."""
    facts = [(each.column, each.text, each.rows, each.different, each.values) for each in reasons]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def with_values(
    problems: Iterable[Sequence[Any]], rows: Iterable[Any], columns: Sequence[str], delimiter: str
) -> list[list[Any]]:
    """Return the problems of a part, each with the cell that was refused."""
    texts = {row.line: row.text for row in rows}
    return [
        [line, column, reason, _cell(texts.get(line, ""), columns, column, delimiter)]
        for line, column, reason, *_ in problems
    ]


def _cell(text: str, columns: Sequence[str], column: str, delimiter: str) -> str | None:
    """Return a refused cell as jsonb can store it: PostgreSQL has no NUL in a text."""
    if column not in columns:
        return None
    cells = csv_lines.sample_cells(text, delimiter)
    index = columns.index(column)
    return cells[index][:LONGEST].replace("\0", "\ufffd") if index < len(cells) else ""


def mended(
    rows: Sequence[Any],
    problems: Iterable[Sequence[Any]],
    stored_mends: Sequence[Any],
    columns: Sequence[str],
    delimiter: str,
) -> list[Any]:
    """Return the rows of a part, with the refused cells replaced that there are values for."""
    by_reason, by_value = stored_mends
    for_reason = {(column, reason): new for column, reason, new in by_reason}
    for_value = {(column, reason, value): new for column, reason, value, new in by_value}
    changes: dict[int, dict[str, str]] = {}
    for line, column, reason, *values in problems:
        value = values[0] if values else None
        new = for_value.get((column, reason, value), for_reason.get((column, reason)))
        if new is not None and column in columns:
            changes.setdefault(line, {})[column] = new
    return [
        row._replace(text=_changed(row.text, changes[row.line], columns, delimiter))
        if row.line in changes
        else row
        for row in rows
    ]


def _changed(text: str, change: dict[str, str], columns: Sequence[str], delimiter: str) -> str:
    cells = csv_lines.cells(text, delimiter)
    cells += [""] * (len(columns) - len(cells))
    for column, new in change.items():
        cells[columns.index(column)] = new
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter, lineterminator="").writerow(cells)
    return buffer.getvalue()
