import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import rme.core.db.encrypted_fields


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0009_tracking"),
        ("tenants", "0003_limits_and_brand"),
    ]

    operations = [
        migrations.CreateModel(
            name="Notice",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("organization_id", models.CharField(max_length=64)),
                ("endpoint_id", models.BigIntegerField()),
                ("event_id", models.UUIDField()),
                ("type", models.CharField(max_length=40)),
                ("data", models.JSONField(null=True)),
                ("status", models.CharField(db_default="PENDING", max_length=10)),
                (
                    "due_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), null=True
                    ),
                ),
                ("tries", models.SmallIntegerField(db_default=0)),
                ("attempts", models.JSONField(null=True)),
                ("tried_at", models.DateTimeField(null=True)),
                (
                    "noted_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="Or replayed.",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("due_at__isnull", False)),
                        fields=["endpoint_id", "due_at"],
                        name="notice_due",
                    ),
                    models.Index(fields=["endpoint_id", "tried_at"], name="notice_tried"),
                    models.Index(fields=["status", "noted_at"], name="notice_age"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("endpoint_id", "event_id"), name="notice_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="WebhookEndpoint",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("url", models.CharField(max_length=500, verbose_name="URL")),
                ("description", models.CharField(blank=True, max_length=200)),
                (
                    "types",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40), size=None
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
                ("disabled_reason", models.CharField(blank=True, db_default="", max_length=200)),
                ("secret", rme.core.db.encrypted_fields.EncryptedTextField()),
                (
                    "former_secret",
                    rme.core.db.encrypted_fields.EncryptedTextField(blank=True, db_default=""),
                ),
                ("former_until", models.DateTimeField(null=True)),
                (
                    "free_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("fence", models.IntegerField(db_default=0)),
                ("failures", models.IntegerField(db_default=0)),
                ("failing_since", models.DateTimeField(null=True)),
                ("last_success_at", models.DateTimeField(null=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="webhook_endpoints",
                        to="tenants.organization",
                    ),
                ),
            ],
        ),
    ]
