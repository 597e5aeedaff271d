"""The counts of minutes and hours, and how far the job has counted."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0016_bulk_actions"),
    ]

    operations = [
        migrations.CreateModel(
            name="CountedUntil",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("first_until", models.DateTimeField()),
                ("final_until", models.DateTimeField(help_text="Hours before it are summed.")),
            ],
        ),
        migrations.CreateModel(
            name="HourCount",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "organization_id",
                        "at",
                        "test",
                        "channel",
                        "account_id",
                        "outcome",
                        "reason",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("organization_id", models.CharField(max_length=64)),
                ("at", models.DateTimeField(help_text="When the span begins.")),
                ("test", models.BooleanField()),
                ("channel", models.CharField(max_length=10)),
                ("account_id", models.BigIntegerField(help_text="0: none, or the simulator.")),
                ("outcome", models.CharField(max_length=24)),
                (
                    "reason",
                    models.CharField(
                        help_text="Why it was not sent; otherwise empty.", max_length=64
                    ),
                ),
                ("count", models.IntegerField()),
                (
                    "latencies",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), null=True, size=None
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["at"], name="hour_count_at")],
            },
        ),
        migrations.CreateModel(
            name="MinuteCount",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "organization_id",
                        "at",
                        "test",
                        "channel",
                        "account_id",
                        "outcome",
                        "reason",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("organization_id", models.CharField(max_length=64)),
                ("at", models.DateTimeField(help_text="When the span begins.")),
                ("test", models.BooleanField()),
                ("channel", models.CharField(max_length=10)),
                ("account_id", models.BigIntegerField(help_text="0: none, or the simulator.")),
                ("outcome", models.CharField(max_length=24)),
                (
                    "reason",
                    models.CharField(
                        help_text="Why it was not sent; otherwise empty.", max_length=64
                    ),
                ),
                ("count", models.IntegerField()),
                (
                    "latencies",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), null=True, size=None
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["at"], name="minute_count_at")],
            },
        ),
    ]
