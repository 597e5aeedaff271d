import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import rme.core.db.encrypted_fields


class Migration(migrations.Migration):
    dependencies = [
        ("crm", "0002_lookups_and_imports"),
    ]

    operations = [
        migrations.CreateModel(
            name="Platform",
            fields=[
                (
                    "organization",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="platform",
                        serialize=False,
                        to="tenants.organization",
                    ),
                ),
                ("kind", models.CharField(default="embedded", max_length=32)),
                (
                    "credentials",
                    rme.core.db.encrypted_fields.EncryptedTextField(blank=True, editable=False),
                ),
                ("mapping", models.JSONField(blank=True, default=dict, editable=False)),
                (
                    "updated_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
            ],
        ),
    ]
