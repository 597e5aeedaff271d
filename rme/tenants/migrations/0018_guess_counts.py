"""Counts of guesses at passwords and codes while Redis is away."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0017_program_permissions")]

    operations = [
        migrations.CreateModel(
            "GuessCount",
            [
                ("key", models.CharField(primary_key=True, max_length=200, serialize=False)),
                ("count", models.IntegerField()),
                ("until", models.DateTimeField(db_index=True)),
            ],
        ),
    ]
