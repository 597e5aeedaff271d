"""The index of a contact's deliveries by the hash of the contact's id."""

from django.db import migrations, models

from messaging.models.delivery_indexes import Hash
from rme.core.db.partitions.indexes import AddPartitionedIndex


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("messaging", "0031_delivery_of_other"),
    ]

    operations = [
        AddPartitionedIndex(
            model_name="delivery",
            index=models.Index(Hash("contact_id"), "message_id", name="delivery_by_contact"),
        ),
    ]
