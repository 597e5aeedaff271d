"""Storage parameters of partitions (`fillfactor` and such).

PostgreSQL keeps them for each partition, and not for the partitioned table. So a migration sets
them for all partitions there are, and a new one takes those of the default partition.
"""

from django.db import connection
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class SetPartitionOptions(Operation):
    """Sets storage parameters of all partitions of a model's table; what is stored stays as it is.

    It takes SHARE UPDATE EXCLUSIVE, a partition at a time: readers and writers go on.
    """

    def __init__(self, model_name: str, **options: int) -> None:
        self.model_name, self.options = model_name, options

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Change nothing: the models do not know these parameters."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        values = ", ".join(f"{name} = {value}" for name, value in self.options.items())
        self._alter(app_label, schema_editor, to_state, f"SET ({values})")

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        self._alter(app_label, schema_editor, to_state, f"RESET ({', '.join(self.options)})")

    def describe(self) -> str:
        return f"Set {', '.join(self.options)} of the partitions of {self.model_name}"

    def _alter(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        state: ProjectState,
        change: str,
    ) -> None:
        table = state.apps.get_model(app_label, self.model_name)._meta.db_table
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(
                "SELECT relid::text FROM pg_partition_tree(%s::regclass) WHERE isleaf ORDER BY 1",
                [f'"{table}"'],
            )
            names = [name for (name,) in cursor.fetchall()]
        for name in names:
            schema_editor.execute(f"ALTER TABLE {name} {change}")


def with_options(table: str) -> str:
    """Return the clause that gives a new partition the parameters of the table's default one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT array_to_string(reloptions, ', ') FROM pg_class WHERE oid = %s::regclass",
            [f'"{table}_default"'],
        )
        [(options,)] = cursor.fetchall()
    return f" WITH ({options})" if options else ""
