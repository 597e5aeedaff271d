"""Tables partitioned by month on their own UUIDv7 primary key (PARTITION BY RANGE).

A look-up by id touches one partition, and retention drops whole partitions. A default partition
takes what no month covers, so that a forgotten beat job loses nothing.
"""

from datetime import UTC, datetime
from typing import Any

from django.db import connection, migrations, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState

from rme.core import ids


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


def _month(of: datetime, ahead: int) -> datetime:
    index = of.year * 12 + of.month - 1 + ahead
    return datetime(index // 12, index % 12 + 1, 1, tzinfo=UTC)


def create_ahead(tables: list[str], *, now: datetime, months: int = 3) -> list[str]:
    """Create the partitions of this month and the next `months`; give the names of new ones."""
    wanted = {
        f"{table}_{_month(now, ahead):%Y%m}": (table, _month(now, ahead), _month(now, ahead + 1))
        for table in tables
        for ahead in range(months + 1)
    }
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relname = ANY(%s)", [list(wanted)])
        present = {name for (name,) in cursor.fetchall()}
        missing = [name for name in wanted if name not in present]
        for name in missing:
            table, start, end = wanted[name]
            with transaction.atomic():
                _create(cursor, name, table, str(ids.at_least(start)), str(ids.at_least(end)))
    return missing


def _create(cursor: Any, name: str, table: str, least: str, end: str) -> None:
    """Create one partition, and move into it what the default partition took for its month."""
    default = f'"{table}_default"'
    inside = f"id >= '{least}' AND id < '{end}'"
    cursor.execute(f'CREATE TABLE "{name}" (LIKE "{table}" INCLUDING ALL)')
    cursor.execute(f'INSERT INTO "{name}" SELECT * FROM {default} WHERE {inside}')
    cursor.execute(f"DELETE FROM {default} WHERE {inside}")
    cursor.execute(
        f'ALTER TABLE "{table}" ATTACH PARTITION "{name}" '
        f"FOR VALUES FROM ('{least}') TO ('{end}')"
    )
