"""Copy the rows of an organization from one cell to another, and compare both.

The first pass copies all rows, partition by partition. Each later one copies what was written since
the pass before, by the age of the rows' `xmin`, and deletes what is gone. A pass reads one snapshot
of the source, so foreign keys hold.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from rme.cells.moving.carried import CarriedTable
from rme.cells.moving.databases import Connection, Shape, shape

DROPPED_AT_ONCE = 5_000
_OLDEST = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
_DIGEST = "count(*), coalesce(sum(hashtextextended(({row})::text, 0)), 0)::text"


class KeysOverlap(Exception):
    """A key is in use in both cells: one cell was not prepared, or an id was given twice."""


class RowDifference(Exception):
    """Both cells do not have the same rows."""


class Digest(NamedTuple):
    """What is compared of a table: its rows' number, and the sum of their hashes."""

    rows: int
    hashes: int


@dataclass(slots=True)
class Pass:
    """What a pass has copied."""

    since: int
    """The transaction from which on the next pass copies."""
    rows: int = 0
    deleted: int = 0
    digests: dict[str, Digest] = field(default_factory=dict)


class Copier:
    """Copies the rows of one organization."""

    def __init__(
        self,
        source: Connection,
        target: Connection,
        tables: Sequence[CarriedTable],
        shapes: Mapping[str, Shape],
        organization_id: str,
    ) -> None:
        self.source, self.target, self.tables = source, target, tables
        self.shapes, self.organization_id = shapes, organization_id
        self.users: Mapping[int, int] = {}
        """The ids of people in the target: of those who have others there, and of those copied."""

    # --- passes -----------------------------------------------------------------------------------
    def oldest(self) -> int:
        """Return the oldest transaction that is not seen yet: changes since it are copied later."""
        (row,) = self.source.execute(_OLDEST).fetchall()
        return int(row[0])

    def copy_small(self) -> int:
        """Copy all rows of the tables without partitions, which refer to each other."""
        with snapshot_of(self.source), self.target.transaction():
            self._delete_gone()
            return sum(self._copy(table, table.name, "true") for table in self._small())

    def copy_partition(self, table: CarriedTable, partition: str) -> int:
        """Copy all rows of a partition, whose table refers to no other."""
        with snapshot_of(self.source), self.target.transaction():
            return self._copy(table, partition, "true")

    def copy_changes(self, since: int, *, compare: bool = False) -> Pass:
        """Copy what was written since a transaction; with `compare`, digest the same snapshot."""
        with snapshot_of(self.source):
            copied = Pass(self.oldest())
            with self.target.transaction():
                copied.deleted = self._delete_gone()
                for table in self.tables:
                    for partition in self.shapes[table.name].partitions:
                        copied.rows += self._copy(table, partition, young(since))
            if compare:
                copied.digests = self.digests(self.source, mapped=True)
        return copied

    def large(self) -> list[tuple[CarriedTable, str]]:
        """Return the partitions of the large tables."""
        return [
            (table, partition)
            for table in self.tables
            for partition in self.shapes[table.name].partitions
            if partition != table.name
        ]

    def _small(self) -> list[CarriedTable]:
        return [each for each in self.tables if self.shapes[each.name].partitions == (each.name,)]

    # --- rows -------------------------------------------------------------------------------------
    def _copy(self, table: CarriedTable, partition: str, condition: str) -> int:
        """Copy rows of a table or partition; those that are there already are replaced."""
        shape, scope = self.shapes[table.name], table.rows_of(self.organization_id)
        columns, rows_of = (
            column_names(shape.columns),
            f"FROM {partition} t WHERE {scope} AND {condition}",
        )
        if self.source.execute(f"SELECT EXISTS (SELECT {rows_of})").fetchone() == (False,):
            return 0
        read = f"COPY (SELECT {self.values(table)} {rows_of}) TO STDOUT (FORMAT binary)"
        self.target.execute(
            f"CREATE TEMP TABLE arriving ON COMMIT DROP AS SELECT {columns} FROM {table.name} "
            "WITH NO DATA"
        )
        write = f"COPY arriving ({columns}) FROM STDIN (FORMAT binary)"
        with self.source.cursor() as out, self.target.cursor() as into:
            with out.copy(read) as rows, into.copy(write) as arriving:
                for block in rows:
                    arriving.write(block)
            count = into.rowcount
        if count:
            merged = self.target.execute(_merge(table, shape, scope)).rowcount
            if merged != count and _replaces(table, shape):
                raise KeysOverlap(f"keys of {table.name} are those of others there")
        self.target.execute("DROP TABLE arriving")
        return count

    def copy_again(self, names: Collection[str]) -> int:
        """Copy all rows of some tables, for example where a job of the target has deleted some."""
        tables = [table for table in self.tables if table.name in names]
        with snapshot_of(self.source), self.target.transaction():
            for table in reversed(tables):
                if table.is_changed:
                    self._delete(table)
            return sum(self._copy(table, table.name, "true") for table in tables)

    def _delete_gone(self) -> int:
        """Delete rows before others that have their unique values arrive; children first."""
        return sum(self._delete(table) for table in reversed(self._small()) if table.is_changed)

    def _delete(self, table: CarriedTable) -> int:
        key = self.shapes[table.name].key
        scope, columns = table.rows_of(self.organization_id), column_names(key)
        all_keys = f"FROM {table.name} t WHERE {scope}"
        digest = _DIGEST.format(row=f"ROW({column_names(key, 't.')})")
        comparison = f"SELECT {digest} {all_keys}"
        if self.source.execute(comparison).fetchone() == self.target.execute(comparison).fetchone():
            return 0
        self.target.execute(
            f"CREATE TEMP TABLE keys ON COMMIT DROP AS SELECT {columns} FROM {table.name} "
            "WITH NO DATA"
        )
        read = f"COPY (SELECT {column_names(key, 't.')} {all_keys}) TO STDOUT"
        with self.source.cursor() as out, self.target.cursor() as into:
            with out.copy(read) as rows, into.copy("COPY keys FROM STDIN") as keys:
                for block in rows:
                    keys.write(block)
            comparison = " AND ".join(f'k."{name}" = t."{name}"' for name in key)
            into.execute(
                f"DELETE FROM {table.name} t WHERE {scope} "
                f"AND NOT EXISTS (SELECT FROM keys k WHERE {comparison})"
            )
            count = into.rowcount
            into.execute("DROP TABLE keys")
        return count

    def drop(self, side: Connection) -> int:
        """Delete the organization's rows of a cell in small transactions; return how many.

        Entries of the audit stay: nothing deletes them.
        """
        count = 0
        for table in reversed(self.tables):
            if not table.is_changed:
                continue
            scope = table.rows_of(self.organization_id)
            for partition in shape(side, table.name).partitions:
                text = (
                    f"DELETE FROM {partition} WHERE ctid = ANY(ARRAY("
                    f"SELECT t.ctid FROM {partition} t WHERE {scope} LIMIT {DROPPED_AT_ONCE}))"
                )
                while deleted := side.execute(text).rowcount:
                    count += deleted
        return count

    def values(self, table: CarriedTable) -> str:
        """Return the columns as the target is to have them: with the ids of its people."""
        return ", ".join(
            self._user_value(table, name) if name in table.user_columns else f't."{name}"'
            for name in self.shapes[table.name].columns
        )

    def _user_value(self, table: CarriedTable, name: str) -> str:
        changed_ids = {old: new for old, new in self.users.items() if old != new}
        if not changed_ids:
            return f't."{name}"'
        cases = " ".join(f"WHEN {old} THEN {new}" for old, new in changed_ids.items())
        if table.model._meta.get_field(name).get_internal_type() != "ArrayField":
            return f'CASE t."{name}" {cases} ELSE t."{name}" END'
        return (
            f"ARRAY(SELECT CASE u {cases} ELSE u END "
            f'FROM unnest(t."{name}") WITH ORDINALITY each(u, place) ORDER BY place)'
        )

    # --- comparing --------------------------------------------------------------------------------
    def digests(self, connection: Connection, *, mapped: bool = False) -> dict[str, Digest]:
        """Return the digest of each table; `mapped`: with the ids of the target's people."""
        digests = {}
        for table in self.tables:
            scope = table.rows_of(self.organization_id)
            values = (
                self.values(table)
                if mapped
                else column_names(self.shapes[table.name].columns, "t.")
            )
            (row,) = connection.execute(
                f"SELECT {_DIGEST.format(row='r')} "
                f"FROM (SELECT {values} FROM {table.name} t WHERE {scope} OFFSET 0) r"
            ).fetchall()
            digests[table.name] = Digest(row[0], int(row[1]))
        return digests


def _merge(table: CarriedTable, shape: Shape, scope: str) -> str:
    """Return the statement that merges what arrives; a row of another organization stays."""
    columns, key = column_names(shape.columns), column_names(shape.key)
    changes = ", ".join(
        f'"{name}" = excluded."{name}"' for name in shape.columns if name not in shape.key
    )
    then = f"DO UPDATE SET {changes} WHERE {scope}" if _replaces(table, shape) else "DO NOTHING"
    return (
        f"INSERT INTO {table.name} AS t ({columns}) SELECT {columns} FROM arriving "
        f"ON CONFLICT ({key}) {then}"
    )


def _replaces(table: CarriedTable, shape: Shape) -> bool:
    """Return whether rows that are there already are replaced."""
    return table.is_changed and len(shape.columns) > len(shape.key)


def young(since: int) -> str:
    """Return the condition that a row of `t` is as new as a transaction, within one snapshot.

    Both ages are counted from one transaction, which stays the same in it.
    """
    return f"age(t.xmin) <= age('{since}'::xid8::xid)"


def column_names(columns: Sequence[str], prefix: str = "") -> str:
    """Return columns as a list of SQL."""
    return ", ".join(f'{prefix}"{name}"' for name in columns)


@contextmanager
def snapshot_of(connection: Connection) -> Iterator[None]:
    """Open a transaction that sees one moment of a database, and writes nothing."""
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute("ROLLBACK")
