"""Imports of suppressions, and an index for the list of suppressions."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import rme.core.ids


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0003_rules_partials_trace"),
        ("tenants", "0003_limits_and_brand"),
    ]

    operations = [
        migrations.CreateModel(
            name="SuppressionImport",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=rme.core.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("columns", models.JSONField(default=list)),
                ("delimiter", models.CharField(default=",", max_length=1)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("RUNNING", "Running"),
                            ("DONE", "Done"),
                            ("CANCELLED", "Cancelled"),
                        ],
                        default="RUNNING",
                        max_length=10,
                    ),
                ),
                ("rows", models.PositiveIntegerField(default=0)),
                ("done", models.PositiveIntegerField(default=0)),
                ("added", models.PositiveIntegerField(default=0)),
                ("replaced", models.PositiveIntegerField(default=0)),
                ("rejected", models.PositiveIntegerField(default=0)),
                ("started_by", models.CharField(blank=True, max_length=200)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "turn_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.organization"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SuppressionImportPart",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("first_line", models.PositiveIntegerField()),
                ("content", models.BinaryField(null=True)),
                ("problems", models.JSONField(default=list)),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="messaging.suppressionimport",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="suppressionimport",
            index=models.Index(
                condition=models.Q(("state", "RUNNING")),
                fields=["turn_at"],
                name="suppression_import_running",
            ),
        ),
        migrations.AddConstraint(
            model_name="suppressionimportpart",
            constraint=models.UniqueConstraint(
                fields=("run", "number"), name="suppression_import_part_once"
            ),
        ),
        # Read by suppression.find: one organization's million would make another's list slow.
        migrations.RunSQL(
            "CREATE INDEX suppression_newest ON messaging_suppression (organization_id, id)",
            "DROP INDEX suppression_newest",
        ),
    ]
