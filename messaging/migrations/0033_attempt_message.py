"""The message of an attempt is null where it follows from the delivery.

A migration locks one of the partitioned tables alone: statements lock several, in their own order.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0032_delivery_by_contact"),
    ]

    operations = [
        migrations.AlterField(
            model_name="attempt",
            name="message_id",
            field=models.UUIDField(null=True),
        ),
    ]
