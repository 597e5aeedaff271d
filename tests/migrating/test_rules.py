"""The rules of docs/upgrading.md hold for the migrations since the release before, and bite."""

import pytest
from django.contrib.postgres import operations as postgres
from django.contrib.postgres.functions import RandomUUID
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.models.functions import Now

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
        postgres.AddIndexConcurrently("webhookdelivery", models.Index(["type"], name="trial")),
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
    "SQL that builds an index": (
        migrations.RunSQL("CREATE INDEX trial ON messaging_notice (type)"),
        "The SQL holds a lock while it reads a table.",
    ),
    "SQL that adds a constraint": (
        migrations.RunSQL([("ALTER TABLE t ADD CONSTRAINT c CHECK (a > %s)", [1])]),
        "The SQL holds a lock while it reads a table.",
    ),
    "SQL that drops a column": (
        migrations.RunSQL("ALTER TABLE messaging_notice DROP COLUMN tries"),
        "The SQL takes away what the release before may use.",
    ),
    "an operation without a rule": (
        migrations.AlterUniqueTogether("pause", {("reason", "id")}),
        "AlterUniqueTogether has no rule: write one.",
    ),
}


@pytest.mark.parametrize(("operation", "sentence"), REFUSED.values(), ids=REFUSED)
def test_a_bad_migration_is_refused(operation, sentence):
    assert violations(operation) == [sentence]


def test_not_null_waits_until_nobody_leaves_the_column_out():
    field = migrations.AlterField("attempt", "latency_ms", models.IntegerField())
    scan = "attempt.latency_ms is made NOT NULL: a valid check first, and post-deploy."
    assert violations(field) == [scan, "attempt.latency_ms: the release before leaves it out."]
    assert violations(field, post_deploy=True) == [scan]


def test_an_index_of_a_table_that_grows_is_removed_concurrently():
    index = migrations.RemoveIndex("webhookdelivery", "notice_due")
    assert violations(index, post_deploy=True) == [
        "An index of webhookdelivery is removed by RemoveIndexConcurrently."
    ]


def test_schema_and_rows_are_changed_apart():
    column = migrations.AddField("pause", "note", models.IntegerField(null=True))
    assert violations(ROWS, column, atomic=False) == [
        "Rows and schema are changed by migrations of their own."
    ]


def test_this_release_can_write_rows_without_a_column_that_it_removes_later():
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
        (migrations.RunSQL("CREATE INDEX CONCURRENTLY t ON messaging_notice (type)"), {}),
    ],
)
def test_what_the_rules_allow_passes(operation, options):
    assert violations(operation, **options) == []
