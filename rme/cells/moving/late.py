"""Rows that were written in the cell that was left after both cells were compared.

Most writes check where their organization is, and write a moment later. A process that sleeps in
between, for longer than a move waits, writes into the cell that was left: its caller has an answer,
and the target has no such row. Such rows are found by the age of their `xmin` and reported; nothing
carries them, since the target may have gone on, as with the chain of the consent ledger.
"""

from collections.abc import Mapping
from typing import Any

from psycopg.types.json import Jsonb

from rme.cells.moving.carried import CarriedTable
from rme.cells.moving.copying import Copier, column_names, snapshot_of, young

NOT_LATE: Mapping[str, str] = {
    "messaging.CircuitChange": "how an account did for this cell's workers",
    "messaging.HourCount": "counted from other rows",
    "messaging.MinuteCount": "counted from other rows",
    "tenants.RequestLogEntry": "calls that were refused here",
}
"""Models whose rows are written for organizations that are elsewhere, too."""
SHOWN = 20
_HASH = "hashtextextended((r)::text, 0)"


class LateRows(Exception):
    """Rows of the cell that was left that the target does not have; the message names them."""

    def __init__(self, rows: list[str]) -> None:
        remainder = f", and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
        super().__init__(
            f"{len(rows)} rows were written here after both cells were compared, and are not the "
            f"same there: {'; '.join(rows[:SHOWN])}{remainder}. Record them there "
            "(docs/moves.md), and delete them here by --drop --late-too."
        )


def find(copier: Copier, since: int, *, missing_only: bool) -> list[str]:
    """Return the late rows as texts; `missing_only`: those whose key the target does not have.

    `since` is the transaction up to which all was compared. Two statements a table at most.
    """
    age = copier.source.execute(f"SELECT age('{since}'::xid8::xid)").fetchone()
    if age is None or age[0] < 0:
        return []  # two thousand million transactions later ages tell nothing
    with snapshot_of(copier.source):
        return [
            f"{table.name} {', '.join(map(str, key.values()))}"
            for table in copier.tables
            if table.model._meta.label not in NOT_LATE
            for key in _of_table(copier, table, since, missing_only=missing_only)
        ]


def _of_table(
    copier: Copier, table: CarriedTable, since: int, *, missing_only: bool
) -> list[dict[str, Any]]:
    """Return the keys of a table's late rows."""
    shape, scope = copier.shapes[table.name], table.rows_of(copier.organization_id)
    pairs = ", ".join(f"'{name}', r.{name}" for name in shape.key)
    select = f"SELECT jsonb_build_object({pairs}), {_HASH} FROM"
    source_rows = copier.source.execute(
        f"{select} (SELECT {copier.values(table)} FROM {table.name} t "
        f"WHERE {scope} AND {young(since)} OFFSET 0) r"
    ).fetchall()
    if not source_rows:
        return []
    names = column_names(shape.key)
    rows = copier.target.execute(
        f"{select} (SELECT {column_names(shape.columns, 't.')} FROM {table.name} t WHERE {scope} "
        f"AND ({names}) IN (SELECT {names} FROM jsonb_populate_recordset(NULL::{table.name}, %s)) "
        "OFFSET 0) r",
        [Jsonb([key for key, _ in source_rows])],
    )
    target_digests = {tuple(key.items()): digest for key, digest in rows}
    return [
        key
        for key, digest in source_rows
        if (target_digest := target_digests.get(tuple(key.items()))) is None
        or (target_digest != digest and not missing_only)
    ]
