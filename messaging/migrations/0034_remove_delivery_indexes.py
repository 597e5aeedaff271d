"""The indexes that 0030 and 0031 replaced go.

Web servers of the release before read by them.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0033_room_for_attempts"),
    ]

    operations = [
        migrations.RemoveIndex("delivery", "delivery_of_message"),
        migrations.RemoveIndex("delivery", "delivery_of_contact"),
    ]
