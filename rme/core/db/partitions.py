"""Tables partitioned by month on their own UUIDv7 primary key (PARTITION BY RANGE).

A look-up by id touches one partition, and retention drops whole partitions. A default partition
takes the rows that no month covers, so that none is lost if the periodic job did not run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from django.db import connection, migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState

from rme.core import ids
from rme.core.db import locks, repartition
from rme.core.db.partition_options import with_options
from rme.core.db.repartition import CHANGE_MS, run

LOCK = "schema"
"""The name of the lock that changes of partitions and migrations hold."""


class CreatePartitionedModel(migrations.CreateModel):
    """Creates a model's table as `PARTITION BY RANGE (id)`, with a default partition."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        plain = schema_editor.sql_create_table
        schema_editor.sql_create_table = f"{plain} PARTITION BY RANGE (id)"
        try:
            super().database_forwards(app_label, schema_editor, from_state, to_state)
        finally:
            schema_editor.sql_create_table = plain
        table = to_state.apps.get_model(app_label, self.name)._meta.db_table
        schema_editor.execute(f'CREATE TABLE "{table}_default" PARTITION OF "{table}" DEFAULT')


@dataclass(frozen=True, slots=True)
class Partition:
    """One month of a table: ids from `start` to before `end`."""

    table: str
    start: datetime
    end: datetime
    attached: bool = False
    """False for a month that was detached and is still to be dropped."""

    @property
    def name(self) -> str:
        return f"{self.table}_{self.start:%Y%m}"


def _month(of: datetime, ahead: int) -> datetime:
    index = of.year * 12 + of.month - 1 + ahead
    return datetime(index // 12, index % 12 + 1, 1, tzinfo=UTC)


def create_ahead(tables: Sequence[str], *, now: datetime, months: int = 3) -> list[str]:
    """Create the partitions of this month and the next `months`; return the names of new ones.

    Past months get partitions too if the default partition holds rows of them. Partitions whose
    locks are not available are left to the next run; all are while another process runs this.
    """
    with locks.alone(LOCK) as alone:
        if not alone:
            return []
        created: list[str] = []
        for table in tables:
            if repartition.clear(table):
                created += _create(table, missing([table], now=now, months=months))
        return created


def missing(tables: Sequence[str], *, now: datetime, months: int = 3) -> list[Partition]:
    """Return the partitions that `create_ahead` has to create."""
    wanted: dict[str, Partition] = {}
    for table in tables:
        ahead = [Partition(table, _month(now, i), _month(now, i + 1)) for i in range(months + 1)]
        filled = _months_in_default(table, before=ahead[-1].end)
        wanted |= {each.name: each for each in [*filled, *ahead]}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid "
            "WHERE relname = ANY(%s) AND (inhparent IS NULL OR inhparent = ANY(%s::regclass[]))",
            [list(wanted), list(tables)],
        )
        present = {name for (name,) in cursor.fetchall()}
    return [each for name, each in wanted.items() if name not in present]


def _create(table: str, months: Sequence[Partition]) -> list[str]:
    if months and not _is_empty(f"{table}_default"):
        borders = {each.name: _border(each) for each in months}
        return list(borders) if repartition.split_default(table, borders) else []
    return [each.name for each in months if run(each.name, _create_statements(each), CHANGE_MS)]


def _create_statements(new: Partition) -> list[str]:
    """Return the statements that create a partition while the default partition is empty."""
    least, end = _border(new)
    return [
        f'CREATE TABLE "{new.name}" (LIKE "{new.table}" INCLUDING ALL){with_options(new.table)}',
        f'ALTER TABLE "{new.table}" ATTACH PARTITION "{new.name}" '
        f"FOR VALUES FROM ('{least}') TO ('{end}')",
    ]


def _border(month: Partition) -> tuple[UUID, UUID]:
    return ids.at_least(month.start), ids.at_least(month.end)


def _is_empty(table: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT NOT EXISTS (SELECT FROM "{table}")')
        return bool(cursor.fetchone()[0])


def _months_in_default(table: str, *, before: datetime) -> list[Partition]:
    """Return the months of the rows in the default partition, by one index probe a month."""
    found: list[Partition] = []
    least, end = ids.at_least(datetime.fromtimestamp(0, UTC)), ids.at_least(before)
    with connection.cursor() as cursor:
        while True:
            cursor.execute(
                f'SELECT id FROM "{table}_default" WHERE id >= %s AND id < %s ORDER BY id LIMIT 1',
                [least, end],
            )
            row = cursor.fetchone()
            if row is None:
                return found
            start = _month(ids.moment(row[0]), 0)
            found.append(Partition(table, start, _month(start, 1)))
            least = ids.at_least(found[-1].end)


def past(tables: Sequence[str], *, before: datetime) -> list[Partition]:
    """Return the partitions of months that ended before a moment, by month and order of tables."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, relispartition FROM pg_class "
            "WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace "
            "AND relname ~ '_[0-9]{6}$' AND left(relname, -7) = ANY(%s)",
            [list(tables)],
        )
        rows = cursor.fetchall()
    found = []
    for name, attached in rows:
        start = datetime.strptime(name[-6:], "%Y%m").replace(tzinfo=UTC)
        found.append(Partition(name[:-7], start, _month(start, 1), attached))
    ended = [each for each in found if each.end <= before]
    return sorted(ended, key=lambda each: (each.start, tables.index(each.table)))


def drop(month: Partition) -> bool:
    """Drop a partition; return False if its locks were not available, for the next run.

    It is detached first: that needs the parent's lock for a moment, while dropping takes as long as
    its files are large. DETACH CONCURRENTLY does not work with a default partition.
    """
    detach = f'ALTER TABLE "{month.table}" DETACH PARTITION "{month.name}"'
    if month.attached and not run(month.name, [detach]):
        return False
    return run(month.name, [f'DROP TABLE "{month.name}"'])
