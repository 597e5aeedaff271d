"""The channels to fall back to are null if there are none."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0033_attempt_message"),
    ]

    operations = [
        migrations.AlterField(
            model_name="delivery",
            name="channels",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=10), null=True, size=None
            ),
        ),
    ]
