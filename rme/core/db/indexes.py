"""Migration operations that build and remove an index of one table while others write to it.

Both wait for all older transactions, however long, and block no one meanwhile. So the lock_timeout
of `migrate`, which is for locks that others wait behind, does not apply to them.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.postgres import operations
from django.db import NotSupportedError
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


@contextmanager
def rebuilding(schema_editor: BaseDatabaseSchemaEditor, index: str) -> Iterator[None]:
    """Drop what an interrupted build left of an index; neither this nor the block has a timeout."""
    if schema_editor.connection.in_atomic_block:
        raise NotSupportedError(f"The index {index} needs a migration with atomic = False.")
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        [lock_timeout] = cursor.fetchone()
    schema_editor.execute("SET lock_timeout = 0")
    try:
        schema_editor.execute(f'DROP INDEX CONCURRENTLY IF EXISTS "{index}"')
        yield
    finally:
        schema_editor.execute(f"SET lock_timeout = '{lock_timeout}'")


class _Rebuilding(Operation):
    """An operation of Django's on an index, repeatable and without a timeout."""

    def _index_name(self) -> str:
        raise NotImplementedError

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        with rebuilding(schema_editor, self._index_name()):
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        with rebuilding(schema_editor, self._index_name()):
            super().database_backwards(app_label, schema_editor, from_state, to_state)


class AddTableIndex(_Rebuilding, operations.AddIndexConcurrently):
    """Adds an index to a model whose table is not partitioned.

    For migrations with `atomic = False` and no other operations: an interrupted migration runs
    again from its start, and so does this operation.
    """

    def _index_name(self) -> str:
        return self.index.name


class RemoveTableIndex(_Rebuilding, operations.RemoveIndexConcurrently):
    """Removes an index of a model whose table is not partitioned."""

    def _index_name(self) -> str:
        return self.name
