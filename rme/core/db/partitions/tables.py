"""Tables partitioned by time on their own UUIDv7 primary key (PARTITION BY RANGE).

A look-up by id touches one partition, and retention drops whole partitions. A default partition
takes the rows that no other covers, so that none is lost if the periodic job did not run.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from uuid import UUID

from django.db import connection, migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState

from rme.core import ids
from rme.core.db import locks
from rme.core.db.partitions import repartition
from rme.core.db.partitions.options import with_options
from rme.core.db.partitions.repartition import CHANGE_MS, run
from rme.core.db.periods import SUFFIX, Period, of_suffix

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
    """A day, a week or a month of a table: ids from `start` to before `end`."""

    table: str
    start: datetime
    period: Period = Period.MONTH
    attached: bool = False
    """False for a partition that was detached and is still to be dropped."""

    @property
    def end(self) -> datetime:
        return self.period.later(self.start)

    @property
    def name(self) -> str:
        return f"{self.table}_{self.period.suffix(self.start)}"

    @property
    def bounds(self) -> tuple[UUID, UUID]:
        """Return the least id, and the one after the last."""
        return ids.at_least(self.start), ids.at_least(self.end)


def create_ahead(
    tables: Sequence[str],
    *,
    now: datetime,
    period: Period = Period.MONTH,
    ahead: int | None = None,
) -> list[str]:
    """Create the partitions of now and of the next `ahead` periods; return the names of new ones.

    Past periods get partitions too if the default partition holds rows of them. Where another
    length was set before, longer partitions that lie ahead and are empty make room. Partitions
    whose locks are not available are left to the next run; all are while another process runs this.
    """
    with locks.alone(LOCK) as has_lock:
        if not has_lock:
            return []
        created: list[str] = []
        for table in tables:
            if repartition.clear(table) and _make_room(table, now, period):
                new = missing([table], now=now, period=period, ahead=ahead)
                created += _create(table, new)
        for name in created:  # it would be planned for by guesses until autovacuum comes
            _execute(f'ANALYZE "{name}"')
        return created


def missing(
    tables: Sequence[str],
    *,
    now: datetime,
    period: Period = Period.MONTH,
    ahead: int | None = None,
) -> list[Partition]:
    """Return the partitions that `create_ahead` has to create."""
    count = period.ahead if ahead is None else ahead
    candidates: list[Partition] = []
    for table in tables:
        ranges = _ranges(table)
        first = period.start_of(now)
        planned = [Partition(table, period.later(first, i), period) for i in range(count + 1)]
        filled = _in_default(table, period, ranges, before=planned[-1].end)
        fitting = [part for each in planned for part in _fitting(each, ranges)]
        candidates += sorted({*filled, *fitting}, key=attrgetter("start"))
    existing_names = {each.name for each in _all(tables)}  # such as one that is still to be dropped
    return [each for each in candidates if each.name not in existing_names]


def _fitting(partition: Partition, ranges: Sequence[tuple[UUID, UUID]]) -> list[Partition]:
    """Return a partition if no other has ids of it; otherwise those of its days that are free."""
    if _is_free(partition, ranges):
        return [partition]
    days = (partition.end - partition.start).days if partition.period is not Period.DAY else 0
    parts = [
        Partition(partition.table, Period.DAY.later(partition.start, i), Period.DAY)
        for i in range(days)
    ]
    return [each for each in parts if _is_free(each, ranges)]


def _is_free(partition: Partition, ranges: Sequence[tuple[UUID, UUID]]) -> bool:
    least, end = partition.bounds
    return all(end <= first or last <= least for first, last in ranges)


def _ranges(table: str) -> list[tuple[UUID, UUID]]:
    """Return the ids that the partitions of a table cover, without the default partition."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_expr(relpartbound, c.oid) FROM pg_class c "
            "JOIN pg_inherits ON inhrelid = c.oid WHERE inhparent = %s::regclass",
            [f'"{table}"'],
        )
        matches = [_BOUNDS.fullmatch(text) for (text,) in cursor.fetchall()]
    least = str(UUID(int=0))
    return [(UUID(each["first"] or least), UUID(each["last"])) for each in matches if each]


_BOUNDS = re.compile(r"FOR VALUES FROM \((?:MINVALUE|'(?P<first>.*)')\) TO \('(?P<last>.*)'\)")


def _make_room(table: str, now: datetime, period: Period) -> bool:
    """Drop partitions that are longer, start in the future and are empty.

    Shorter ones stay: they are the days of a period that another partition has a part of.
    """
    order = list(Period)
    longer = order[order.index(period) + 1 :]
    ahead = [each for each in _all([table]) if each.start > now and each.period in longer]
    return all(drop(each) for each in ahead if each.attached and _is_empty(each.name))


def _create(table: str, new: Sequence[Partition]) -> list[str]:
    if new and not _is_empty(f"{table}_default"):
        borders = {each.name: each.bounds for each in new}
        return list(borders) if repartition.split_default(table, borders) else []
    return [
        each.name
        for each in new
        if repartition.run_with_retries(each.name, _create_statements(each))
    ]


def _create_statements(new: Partition) -> list[str]:
    """Return the statements that create a partition while the default partition is empty."""
    least, end = new.bounds
    return [
        f'CREATE TABLE "{new.name}" (LIKE "{new.table}" INCLUDING ALL){with_options(new.table)}',
        f'ALTER TABLE "{new.table}" ATTACH PARTITION "{new.name}" '
        f"FOR VALUES FROM ('{least}') TO ('{end}')",
    ]


def _is_empty(table: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT NOT EXISTS (SELECT FROM "{table}")')
        return bool(cursor.fetchone()[0])


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _in_default(
    table: str, period: Period, ranges: Sequence[tuple[UUID, UUID]], *, before: datetime
) -> list[Partition]:
    """Return the partitions of the rows in the default partition, by one index probe each."""
    partitions: list[Partition] = []
    least, end = ids.at_least(datetime.fromtimestamp(0, UTC)), ids.at_least(before)
    with connection.cursor() as cursor:
        while True:
            cursor.execute(
                f'SELECT id FROM "{table}_default" WHERE id >= %s AND id < %s ORDER BY id LIMIT 1',
                [least, end],
            )
            row = cursor.fetchone()
            if row is None:
                return partitions
            moment = ids.moment(row[0])
            longest = Partition(table, period.start_of(moment), period)
            day = Partition(table, Period.DAY.start_of(moment), Period.DAY)
            partitions.append(longest if _is_free(longest, ranges) else day)
            least = partitions[-1].bounds[1]


def past(tables: Sequence[str], *, before: datetime) -> list[Partition]:
    """Return the partitions that ended before a moment, by start and order of tables."""
    ended = [each for each in _all(tables) if each.end <= before]
    return sorted(ended, key=lambda each: (each.start, tables.index(each.table)))


def oldest(table: str) -> datetime | None:
    """Return the start of the oldest partition; None if there is none that has a period."""
    return min((each.start for each in _all([table]) if each.attached), default=None)


def _all(tables: Sequence[str]) -> list[Partition]:
    """Return the partitions of tables that have a period, attached or not."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, relispartition FROM pg_class c LEFT JOIN pg_inherits i "
            "ON i.inhrelid = c.oid WHERE relkind = 'r' "
            "AND relnamespace = current_schema()::regnamespace "
            "AND relname ~ %s AND regexp_replace(relname, %s, '') = ANY(%s) "
            "AND (inhparent IS NULL OR inhparent = ANY(%s::regclass[]))",  # no copy's
            [SUFFIX, SUFFIX, list(tables), list(tables)],
        )
        rows = cursor.fetchall()
    partitions = []
    for name, attached in rows:
        table, _, suffix = name.rpartition("_")
        period, start = of_suffix(suffix)
        partitions.append(Partition(table, start, period, attached))
    return partitions


def length_at(table: str, moment: datetime) -> Period | None:
    """Return the length of the partition that a moment is in; None if there is none."""
    periods = [each.period for each in _all([table]) if each.start <= moment < each.end]
    return periods[0] if periods else None


def carried_over_until(table: str) -> UUID:
    """Return the least id above the partition to which `drop_except` carries rows over."""
    least = UUID(int=0)
    return next((last for first, last in _ranges(table) if first == least), least)


def drop(partition: Partition) -> bool:
    """Drop a partition; return False if its locks were not available, for the next run.

    It is detached first: that needs the parent's lock for a moment, while dropping takes as long as
    its files are large. DETACH CONCURRENTLY does not work with a default partition.
    """
    name = partition.name
    detach = f'ALTER TABLE "{partition.table}" DETACH PARTITION "{name}"'
    if partition.attached and not run(name, [detach]):
        return False
    return run(name, [f'DROP TABLE "{name}"'])


def drop_except(partition: Partition, keys: Sequence[UUID]) -> bool:
    """Drop a partition, but carry some of its rows over; return False as `drop` does.

    They go to one partition (`…_kept`), from the least id to the end of the last partition that was
    dropped so. Partitions are dropped in the order of time therefore. Rows that the default
    partition holds of that time go there too.
    """
    table, name, target = partition.table, partition.name, f"{partition.table}_kept"
    end = partition.bounds[1]
    columns = ", ".join(repartition.columns(table))
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NULL", [f'"{target}"'])
        is_new = cursor.fetchone()[0]
    values = ",".join(str(key) for key in keys)
    create = f'CREATE TABLE "{target}" (LIKE "{table}" INCLUDING ALL){with_options(table)}'
    statements = [
        create if is_new else f'ALTER TABLE "{table}" DETACH PARTITION "{target}"',
        f'ALTER TABLE "{table}" DETACH PARTITION "{name}"',
        f'INSERT INTO "{target}" ({columns}) SELECT {columns} FROM "{name}" '
        f"WHERE id = ANY('{{{values}}}'::uuid[])",
        f"""WITH moved AS (DELETE FROM "{table}_default" WHERE id < '{end}' RETURNING {columns}) """
        f'INSERT INTO "{target}" ({columns}) SELECT {columns} FROM moved',
        f'ALTER TABLE "{table}" ATTACH PARTITION "{target}" '
        f"FOR VALUES FROM (MINVALUE) TO ('{end}')",
    ]
    return run(name, statements, CHANGE_MS) and run(name, [f'DROP TABLE "{name}"'])
