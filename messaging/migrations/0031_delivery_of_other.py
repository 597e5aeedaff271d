"""The index by which deliveries are found that do not have their message's id."""

from django.db import migrations, models
from django.db.models import F, Q

from rme.core.db.partitions.indexes import AddPartitionedIndex


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("messaging", "0030_drafts_of_accounts"),
    ]

    operations = [
        AddPartitionedIndex(
            model_name="delivery",
            index=models.Index(
                fields=["message_id"], name="delivery_of_other", condition=~Q(id=F("message_id"))
            ),
        ),
    ]
