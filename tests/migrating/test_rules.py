"""The rules of docs/upgrading.md hold for the migrations since the release before, and bite."""

import pytest
from django.contrib.postgres import operations as postgres
from django.contrib.postgres.functions import RandomUUID
from django.contrib.postgres.operations import CreateExtension
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.models.functions import Now

from rme.core.db.indexes import AddTableIndex
from rme.core.db.partitions.indexes import AddPartitionedIndex
from rme.post_deploy import is_post_deploy
from tests.migrating import rules

LOADER = MigrationLoader(None)
UNRELEASED = rules.unreleased(LOADER)
FORMER = rules.former_state(LOADER)
INDEX = models.Index(fields=["category"], name="trial")
ROWS = migrations.RunPython(migrations.RunPython.noop)


def test_migrations_since_the_release_before_keep_the_rules():
    found = {}
    for migration in UNRELEASED:
        key = (migration.app_label, migration.name)
        state = LOADER.project_state(key, at_end=False)
        found[key] = rules.violations(migration, state, FORMER)
        before = [LOADER.graph.nodes[each] for each in LOADER.graph.forwards_plan(key)[:-1]]
        if not is_post_deploy(migration):
            late = [each for each in before if each in UNRELEASED and is_post_deploy(each)]
            found[key] += [f"It comes after {each}, which is post-deploy." for each in late]
    assert {key: each for key, each in found.items() if each} == {}


def violations(*operations, app="messaging", atomic=True, post_deploy=False):
    migration = migrations.Migration("trial", app)
    migration.operations = list(operations)
    migration.atomic, migration.post_deploy = atomic, post_deploy
    return rules.violations(migration, FORMER.clone(), FORMER)


def check(name="trial_check"):
    return models.CheckConstraint(condition=~models.Q(category=""), name=name)


REFUSED = {
    "a column without a value": (
        migrations.AddField("delivery", "note", models.CharField(max_length=9)),
        "delivery.note needs null or db_default: it is not written yet.",
    ),
    "a column whose default is computed": (
        migrations.AddField("delivery", "note", models.UUIDField(db_default=RandomUUID())),
        "delivery.note: its default is computed for each row, under a lock.",
    ),
    "a column with an index": (
        migrations.AddField("event", "note", models.IntegerField(null=True, db_index=True)),
        "event.note: its values or its index are built under a lock.",
    ),
    "a column that is read": (
        migrations.RemoveField("providerreference", "ask_at"),
        "What the release before uses of providerreference goes post-deploy.",
    ),
    "a table that is read": (
        migrations.DeleteModel("Pause"),
        "What the release before uses of pause goes post-deploy.",
    ),
    "an index that is read by": (
        migrations.RemoveIndex("delivery", "delivery_ready"),
        "What the release before uses of delivery goes post-deploy.",
    ),
    "a renamed column": (
        migrations.RenameField("pause", "reason", "why"),
        "pause is renamed: add, copy, and remove a release later.",
    ),
    "a renamed table": (
        migrations.AlterModelTable("pause", "pauses"),
        "pause is renamed: add, copy, and remove a release later.",
    ),
    "another type": (
        migrations.AlterField("attempt", "latency_ms", models.BigIntegerField(null=True)),
        "attempt.latency_ms changes its type: add a column, copy, and remove a release later.",
    ),
    "an index of a partitioned table": (
        migrations.AddIndex("delivery", INDEX),
        "delivery is read under a lock: build the index or the check apart.",
    ),
    "an index in a transaction": (
        AddTableIndex("webhookdelivery", models.Index(["type"], name="trial")),
        "An index is built concurrently: atomic = False, and nothing else beside it.",
    ),
    "a constraint of a small table": (
        migrations.AddConstraint("pause", check()),
        "The release before may break a constraint of pause: post-deploy.",
    ),
    "a constraint that is not valid yet": (
        postgres.AddConstraintNotValid("delivery", check()),
        "The release before may break a constraint of delivery: post-deploy.",
    ),
    "rows in a transaction": (
        ROWS,
        "Rows are read or changed in batches, with atomic = False.",
    ),
    "an operation without a rule": (
        migrations.AlterUniqueTogether("pause", {("reason", "id")}),
        "AlterUniqueTogether has no rule: write one.",
    ),
    "an operation without a model": (
        CreateExtension("citext"),
        "CreateExtension has no rule: write one.",
    ),
    "an index that lock_timeout would end": (
        postgres.AddIndexConcurrently("webhookdelivery", models.Index(["type"], name="trial")),
        "An index of webhookdelivery: by AddTableIndex or RemoveTableIndex.",
    ),
    "another collation": (
        migrations.AlterField(
            "pause", "reason", models.CharField(max_length=900, db_collation="C")
        ),
        "pause.reason changes its type: add a column, copy, and remove a release later.",
    ),
    "a check of a type": (
        migrations.AlterField("attempt", "latency_ms", models.PositiveIntegerField(null=True)),
        "attempt.latency_ms changes its type: add a column, copy, and remove a release later.",
    ),
}


@pytest.mark.parametrize(("operation", "sentence"), REFUSED.values(), ids=REFUSED)
def test_a_bad_migration_is_refused(operation, sentence):
    assert violations(operation) == [sentence]


def test_a_foreign_key_is_not_enforced_later():
    """Also: an app without small tables has its rules."""

    def organization(*, enforced):
        field = models.ForeignKey(
            "tenants.Organization", models.CASCADE, db_constraint=enforced, related_name="+"
        )
        return migrations.AlterField("device", "organization", field)

    operations = organization(enforced=False), organization(enforced=True)
    assert violations(*operations, app="push") == [
        "device.organization: its foreign key reads the table under a lock, and may be broken."
    ]


def test_migration_locking_several_growing_tables_is_rejected():
    def column(model):
        return migrations.AddField(model, "note", models.IntegerField(null=True))

    both = column("event"), column("delivery"), column("pause")
    sentence = "One table that grows a migration, or all stay locked to its end: delivery, event."
    assert violations(*both) == [sentence]
    assert violations(*both, atomic=False) == []
    alike = FORMER.models["messaging", "event"].fields["type"].clone()
    alike.help_text = "A text for people."
    assert violations(column("delivery"), migrations.AlterField("event", "type", alike)) == []


def test_sql_is_looked_through():
    added = "ALTER TABLE t ADD CONSTRAINT c CHECK (a > %s)"
    assert violations(migrations.RunSQL([(added, [1])])) == [
        f"The SQL is not known to be harmless: {added}"
    ]


def test_not_null_is_rejected_while_the_former_release_omits_the_column():
    field = migrations.AlterField("attempt", "latency_ms", models.IntegerField())
    scan = "attempt.latency_ms is made NOT NULL: a valid check first, and post-deploy."
    assert violations(field) == [scan, "attempt.latency_ms: the release before leaves it out."]
    assert violations(field, post_deploy=True) == [scan]


def test_index_of_a_growing_table_must_be_removed_concurrently():
    index = migrations.RemoveIndex("webhookdelivery", "notice_due")
    assert violations(index, post_deploy=True) == [
        "An index of webhookdelivery is removed by RemoveTableIndex."
    ]


def test_schema_and_rows_must_be_changed_by_separate_migrations():
    column = migrations.AddField("pause", "note", models.IntegerField(null=True))
    assert violations(ROWS, column, atomic=False) == [
        "Rows and schema are changed by migrations of their own."
    ]


def test_column_to_be_removed_needs_null_or_a_database_default():
    assert violations(migrations.RemoveField("pause", "reason"), post_deploy=True) == [
        "pause.reason needs null or db_default first: it is not written."
    ]


@pytest.mark.parametrize(
    ("operation", "options"),
    [
        (migrations.AddField("delivery", "note", models.IntegerField(null=True)), {}),
        (migrations.AddField("event", "note", models.DateTimeField(db_default=Now())), {}),
        (migrations.RemoveField("providerreference", "ask_at"), {"post_deploy": True}),
        (migrations.CreateModel("Trial", [("id", models.BigAutoField(primary_key=True))]), {}),
        (migrations.AlterField("pause", "reason", models.CharField(max_length=900)), {}),
        (AddPartitionedIndex("delivery", INDEX), {"atomic": False}),
        (migrations.AddIndex("pause", INDEX), {}),
        (postgres.AddConstraintNotValid("delivery", check()), {"post_deploy": True}),
        (ROWS, {"atomic": False}),
    ],
)
def test_allowed_operations_pass(operation, options):
    assert violations(operation, **options) == []
