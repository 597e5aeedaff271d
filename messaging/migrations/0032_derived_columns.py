"""What follows from other columns is null: the message of an attempt whose delivery has the
message's id, and the channels to fall back to if there are none.
"""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0031_delivery_by_contact"),
    ]

    operations = [
        migrations.AlterField(
            model_name="attempt",
            name="message_id",
            field=models.UUIDField(null=True),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="channels",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=10), null=True, size=None
            ),
        ),
    ]
