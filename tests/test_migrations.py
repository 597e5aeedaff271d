"""Migrations leave room for the release before: its code goes on beside the new one's.

What it writes must still be taken, and what it reads must still be there. Only a post-deploy
migration removes a column or table: it runs once no process of the release before does.
"""

import pytest
from django.apps import apps
from django.db import migrations
from django.db.migrations.loader import MigrationLoader

from messaging.models import PARTITIONED
from rme.core.db.partitions.indexes import AddPartitionedIndex
from tests.migrating.rules import is_filled_in

OWN = {config.label for config in apps.get_app_configs() if "site-packages" not in config.path}
PARTITIONED_MODELS = {model._meta.model_name for model in PARTITIONED}
BEFORE_CONCURRENTLY = {"messaging.0005_fair_release", "messaging.0007_held"}
"""Migrations that are older than AddPartitionedIndex."""
TAKES_AWAY = (
    migrations.AlterModelTable,
    migrations.DeleteModel,
    migrations.RemoveField,
    migrations.RenameField,
    migrations.RenameModel,
)
LATER = [
    migration
    for (app, name), migration in sorted(MigrationLoader(None).disk_migrations.items())
    if app in OWN and not name.startswith("0001")
]


def made(migration):
    """Return the tables that an older release does not know."""
    return {
        operation.name.lower()
        for operation in migration.operations
        if isinstance(operation, migrations.CreateModel)
    }


def test_migrations_of_all_apps_are_checked():
    assert {migration.app_label for migration in LATER} >= {"crm", "messaging", "push", "tenants"}


@pytest.mark.promise("faults-18")
@pytest.mark.parametrize("migration", LATER, ids=str)
def test_migration_before_the_deployment_removes_nothing(migration):
    removed = [op for op in migration.operations if isinstance(op, TAKES_AWAY)]
    assert removed == [] or getattr(migration, "post_deploy", False)


@pytest.mark.promise("faults-18")
@pytest.mark.parametrize("migration", LATER, ids=str)
def test_a_new_column_needs_no_value(migration):
    added = [
        op
        for op in migration.operations
        if isinstance(op, migrations.AddField) and op.model_name.lower() not in made(migration)
    ]
    assert [f"{op.model_name}.{op.name}" for op in added if not is_filled_in(op.field)] == []


@pytest.mark.parametrize("migration", LATER, ids=str)
def test_a_new_index_of_a_partitioned_table_is_built_concurrently(migration):
    added = [
        op
        for op in migration.operations
        if isinstance(op, migrations.AddIndex) and op.model_name in PARTITIONED_MODELS
    ]
    if str(migration) not in BEFORE_CONCURRENTLY:
        assert [op for op in added if not isinstance(op, AddPartitionedIndex)] == []
        assert not added or (not migration.atomic and added == migration.operations)


@pytest.mark.promise("faults-18")
@pytest.mark.parametrize("migration", LATER, ids=str)
def test_a_new_constraint_is_on_a_new_table(migration):
    added = [op for op in migration.operations if isinstance(op, migrations.AddConstraint)]
    assert {op.model_name.lower() for op in added} <= made(migration)
