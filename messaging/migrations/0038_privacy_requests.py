"""Verifications of the consent ledger, and requests for data exports and erasures."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import rme.core.ids


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0037_remove_delivery_of_contact"),
        ("tenants", "0009_audit"),
    ]

    operations = [
        migrations.CreateModel(
            name="PrivacyRequest",
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
                        choices=[("EXPORT", "Data export"), ("ERASURE", "Erasure")], max_length=8
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("OPEN", "Open"),
                            ("RUNNING", "Running"),
                            ("DONE", "Done"),
                            ("REFUSED", "Refused"),
                        ],
                        default="OPEN",
                        max_length=8,
                    ),
                ),
                ("contact_id", models.CharField(blank=True, max_length=64)),
                ("address", models.CharField(blank=True, max_length=320)),
                ("address_digest", models.CharField(blank=True, max_length=64)),
                ("note", models.CharField(blank=True, max_length=500)),
                ("requested_at", models.DateTimeField()),
                ("due_at", models.DateTimeField()),
                ("recorded_by", models.CharField(max_length=200)),
                ("actor", models.JSONField(default=dict)),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("result", models.CharField(blank=True, max_length=1000)),
                ("erased_at", models.DateTimeField(null=True)),
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
        ),
        migrations.CreateModel(
            name="PrivacyFile",
            fields=[
                (
                    "request",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="file",
                        serialize=False,
                        to="messaging.privacyrequest",
                    ),
                ),
                ("content", models.BinaryField()),
                ("size", models.PositiveIntegerField()),
                ("expires_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="LedgerCheck",
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
                    "state",
                    models.CharField(
                        choices=[("RUNNING", "Running"), ("DONE", "Done")],
                        default="RUNNING",
                        max_length=8,
                    ),
                ),
                ("total", models.PositiveIntegerField()),
                ("entries", models.PositiveIntegerField(default=0)),
                ("erased", models.PositiveIntegerField(default=0)),
                ("head", models.CharField(default="", max_length=64)),
                ("last", models.UUIDField(null=True)),
                ("broken", models.UUIDField(null=True)),
                ("missing", models.UUIDField(null=True)),
                ("started_by", models.CharField(max_length=200)),
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
                        name="ledger_check_running",
                    ),
                    models.Index(fields=["organization", "-id"], name="ledger_check_newest"),
                ],
            },
        ),
        migrations.AddIndex(
            model_name="privacyrequest",
            index=models.Index(
                condition=models.Q(("state", "RUNNING")),
                fields=["turn_at"],
                name="privacy_request_running",
            ),
        ),
        migrations.AddIndex(
            model_name="privacyrequest",
            index=models.Index(
                condition=models.Q(("state__in", ["OPEN", "RUNNING"])),
                fields=["organization", "due_at"],
                name="privacy_request_due",
            ),
        ),
        migrations.AddIndex(
            model_name="privacyrequest",
            index=models.Index(fields=["organization", "-id"], name="privacy_request_newest"),
        ),
        migrations.AddIndex(
            model_name="privacyrequest",
            index=models.Index(fields=["organization", "contact_id"], name="privacy_request_of"),
        ),
    ]
