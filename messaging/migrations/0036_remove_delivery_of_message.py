"""The index that 0031 replaced goes. Web servers of the release before read by it."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0035_room_for_attempts"),
    ]

    operations = [
        migrations.RemoveIndex("delivery", "delivery_of_message"),
    ]
