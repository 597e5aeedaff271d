"""Less room in the pages of attempts: a row with its outcome is less than one and a half times as
long as the row before.
"""

from django.db import migrations

from rme.core.db.partitions.options import SetPartitionOptions


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("messaging", "0034_delivery_channels"),
    ]

    operations = [
        SetPartitionOptions("attempt", fillfactor=41),
    ]
