"""The index that the migration before replaced goes.

Web servers of the release before read a message by it.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0030_delivery_of_other"),
    ]

    operations = [
        migrations.RemoveIndex("delivery", "delivery_of_message"),
    ]
