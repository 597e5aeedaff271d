"""An index of the oldest that is due on each channel."""

from django.db import migrations, models

from rme.core.db.partitions.indexes import AddPartitionedIndex


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("messaging", "0014_content_size"),
    ]

    operations = [
        AddPartitionedIndex(
            model_name="delivery",
            index=models.Index(
                models.F("status"),
                models.F("channel"),
                models.F("priority"),
                models.OrderBy(models.F("due_at"), nulls_first=True),
                condition=models.Q(
                    ("due_at__isnull", False), ("status__in", ["ACCEPTED", "SCHEDULED"])
                ),
                name="delivery_waiting",
            ),
        ),
    ]
