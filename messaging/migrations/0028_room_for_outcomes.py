"""More room in the pages of attempts: an outcome makes a row almost twice as long.

With it nearly all outcomes are written beside the row before, with no new entry in any index. The
lock that this takes holds up no reader or writer.
"""

from django.db import migrations

from rme.core.db.partitions.options import SetPartitionOptions


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("messaging", "0027_usual_requests"),
    ]

    operations = [
        SetPartitionOptions("attempt", fillfactor=38),
    ]
