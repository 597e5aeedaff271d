"""Saved filters of the list of messages, and what checks of provider accounts found."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import rme.core.ids


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0017_minute_counts"),
        ("tenants", "0008_simulator"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="provideraccount",
            name="check_problem",
            field=models.CharField(blank=True, db_default="", editable=False, max_length=200),
        ),
        migrations.AddField(
            model_name="provideraccount",
            name="checked_at",
            field=models.DateTimeField(
                blank=True,
                editable=False,
                help_text="None: not since the settings changed.",
                null=True,
            ),
        ),
        migrations.CreateModel(
            name="SavedFilter",
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
                ("name", models.CharField(max_length=80)),
                ("query", models.CharField(max_length=2000)),
                ("is_shared", models.BooleanField(default=False)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.organization"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("organization", "user", "name"), name="saved_filter_once"
                    )
                ],
            },
        ),
    ]
