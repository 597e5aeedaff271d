"""The index of an organization's messages, upwards.

Ids grow, so with the newest first each page of the index was split in the middle, and stayed half
empty.
"""

from django.db import migrations, models

from rme.core.db.partitions.indexes import AddPartitionedIndex


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("messaging", "0025_derived_events"),
    ]

    operations = [
        AddPartitionedIndex(
            model_name="message",
            index=models.Index(fields=["organization_id", "id"], name="message_newest"),
        ),
    ]
