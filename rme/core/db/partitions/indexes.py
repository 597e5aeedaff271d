"""An index on a partitioned table, built while others write to it.

PostgreSQL cannot build an index on a partitioned table concurrently. So the index of each partition
is built concurrently and attached to the table's index, which is valid once it has all of them.
"""

import re
from typing import Any

from django.db import NotSupportedError, migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState

from rme.core.db.indexes import rebuilding

_DEFINITION = re.compile(r"CREATE INDEX \S+ ON ONLY \S+ (USING .*)", re.DOTALL)


class AddPartitionedIndex(migrations.AddIndex):
    """Adds an index to a partitioned model without blocking writers while it is built.

    The table's own index, which is empty, needs a lock for a moment; `migrate` bounds that wait.
    For migrations with `atomic = False` and no other kinds of operations: an interrupted migration
    runs again from its start, and this operation is idempotent.
    """

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        if schema_editor.connection.in_atomic_block:
            raise NotSupportedError("AddPartitionedIndex needs a migration with atomic = False.")
        model = to_state.apps.get_model(app_label, self.model_name)
        table, name = model._meta.db_table, self.index.name
        on_table = schema_editor.sql_create_index.replace("INDEX", "INDEX IF NOT EXISTS", 1)
        on_table = on_table.replace(" ON ", " ON ONLY ", 1)
        schema_editor.execute(self.index.create_sql(model, schema_editor, sql=on_table))
        for partition in _without(schema_editor, table, name):
            partition_index = f"{name}_{partition.removeprefix(f'{table}_')}"
            definition = _definition(schema_editor, name)
            with rebuilding(schema_editor, partition_index):
                build = (
                    f'CREATE INDEX CONCURRENTLY "{partition_index}" ON "{partition}" {definition}'
                )
                schema_editor.execute(build)
            schema_editor.execute(f'ALTER INDEX "{name}" ATTACH PARTITION "{partition_index}"')


def _without(schema_editor: BaseDatabaseSchemaEditor, table: str, index: str) -> list[str]:
    """Return the partitions of a table that have no part of the index attached."""
    rows = _query(
        schema_editor,
        "SELECT p.relname FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhrelid "
        "WHERE i.inhparent = %s::regclass AND NOT EXISTS (SELECT FROM pg_index x "
        "JOIN pg_inherits a ON a.inhrelid = x.indexrelid "
        "WHERE x.indrelid = p.oid AND a.inhparent = %s::regclass) ORDER BY 1",
        [f'"{table}"', f'"{index}"'],
    )
    return [name for (name,) in rows]


def _definition(schema_editor: BaseDatabaseSchemaEditor, index: str) -> str:
    """Return the part of the CREATE INDEX statement after the table's name."""
    [(text,)] = _query(schema_editor, "SELECT pg_get_indexdef(%s::regclass)", [f'"{index}"'])
    match = _DEFINITION.fullmatch(text)
    assert match, text
    return match[1]


def _query(
    schema_editor: BaseDatabaseSchemaEditor, statement: str, values: list[str]
) -> list[tuple[Any, ...]]:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return list(cursor.fetchall())
