import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import rme.core.ids


class Migration(migrations.Migration):
    dependencies = [
        ("crm", "0003_platform"),
        ("tenants", "0003_limits_and_brand"),
    ]

    operations = [
        migrations.CreateModel(
            name="CaseComment",
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
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("text", models.TextField(max_length=32000)),
                ("author", models.CharField(blank=True, editable=False, max_length=150)),
                (
                    "case",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="comments",
                        to="crm.case",
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.organization"
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
    ]
