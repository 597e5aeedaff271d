"""Providers' own ids of messages, for those whose reports name nothing else."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0007_held"),
    ]

    operations = [
        migrations.CreateModel(
            name="ProviderReference",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("account_id", models.BigIntegerField()),
                ("reference", models.CharField(max_length=255)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["account_id", "reference"], name="provider_reference_of")
                ],
            },
        ),
    ]
