"""Actions that people order on many deliveries."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import rme.core.ids


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0015_webhook_deliveries"),
        ("tenants", "0006_editors_are_operators"),
    ]

    operations = [
        migrations.CreateModel(
            name="BulkAction",
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
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("CANCEL", "Cancel scheduled sends"),
                            ("RESEND", "Send again"),
                            ("LIFT", "Lift suppressions"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("RUNNING", "Running"), ("DONE", "Done"), ("STOPPED", "Stopped")],
                        default="RUNNING",
                        max_length=8,
                    ),
                ),
                (
                    "scope",
                    models.CharField(help_text="What was chosen, in words.", max_length=1000),
                ),
                ("reason", models.CharField(max_length=500)),
                (
                    "targets",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(), size=None
                    ),
                ),
                ("total", models.PositiveIntegerField()),
                ("done", models.PositiveIntegerField(default=0)),
                ("failed", models.PositiveIntegerField(default=0)),
                ("problems", models.JSONField(default=list)),
                ("started_by", models.CharField(max_length=200)),
                ("user_id", models.BigIntegerField()),
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
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.organization"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "RUNNING")),
                        fields=["turn_at"],
                        name="bulk_action_running",
                    ),
                    models.Index(fields=["organization", "-id"], name="bulk_action_history"),
                ],
            },
        ),
    ]
