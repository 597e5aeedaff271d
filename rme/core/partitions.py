"""Tables partitioned by month on their own UUIDv7 primary key (PARTITION BY RANGE).

A look-up by id touches one partition, and retention drops whole partitions. A default partition
takes what no month covers, so that a forgotten beat job loses nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog
from django.db import OperationalError, connection, migrations, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState
from psycopg.errors import LockNotAvailable

from rme.core import ids

log = structlog.get_logger(__name__)

LOCK_MS = 250
"""How long a change of partitions waits for its locks: whoever comes after it waits as long."""


class CreatePartitionedModel(migrations.CreateModel):
    """Create a model's table as `PARTITION BY RANGE (id)`, with a default partition."""

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
    """A month that is not was detached and then not dropped."""

    @property
    def name(self) -> str:
        return f"{self.table}_{self.start:%Y%m}"


def _month(of: datetime, ahead: int) -> datetime:
    index = of.year * 12 + of.month - 1 + ahead
    return datetime(index // 12, index % 12 + 1, 1, tzinfo=UTC)


def create_ahead(tables: Sequence[str], *, now: datetime, months: int = 3) -> list[str]:
    """Create the partitions of this month and the next `months`; give the names of new ones.

    One whose locks are held by others is left to the next run.
    """
    wanted = {
        made.name: made
        for table in tables
        for ahead in range(months + 1)
        if (made := Partition(table, _month(now, ahead), _month(now, ahead + 1)))
    }
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relname = ANY(%s)", [list(wanted)])
        present = {name for (name,) in cursor.fetchall()}
    missing = [each for name, each in wanted.items() if name not in present]
    return [each.name for each in missing if _run(each, _creating(each))]


def _creating(new: Partition) -> list[str]:
    """Write how a partition is created, and what the default took for its month moved into it."""
    default = f'"{new.table}_default"'
    least, end = ids.at_least(new.start), ids.at_least(new.end)
    inside = f"id >= '{least}' AND id < '{end}'"
    return [
        f'CREATE TABLE "{new.name}" (LIKE "{new.table}" INCLUDING ALL)',
        f'INSERT INTO "{new.name}" SELECT * FROM {default} WHERE {inside}',
        f"DELETE FROM {default} WHERE {inside}",
        f'ALTER TABLE "{new.table}" ATTACH PARTITION "{new.name}" '
        f"FOR VALUES FROM ('{least}') TO ('{end}')",
    ]


def past(tables: Sequence[str], *, before: datetime) -> list[Partition]:
    """Give the months that ended before a moment, oldest first, a month's tables in their order."""
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
    """Drop a month; False where somebody holds it, which is for the next run.

    Detached first: that needs the parent's lock and is over at once, while dropping takes as long
    as its files are large. CONCURRENTLY is not to be had beside a default partition.
    """
    if month.attached and not _run(
        month, [f'ALTER TABLE "{month.table}" DETACH PARTITION "{month.name}"']
    ):
        return False
    return _run(month, [f'DROP TABLE "{month.name}"'])


def _run(partition: Partition, statements: Sequence[str]) -> bool:
    """Run statements in one transaction; False where a lock was not to be had in time."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = {LOCK_MS}")
            for statement in statements:
                cursor.execute(statement)
    except OperationalError as error:
        if not isinstance(error.__cause__, LockNotAvailable):
            raise
        log.warning("partition.locked", partition=partition.name)
        return False
    return True
