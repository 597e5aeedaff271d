"""The index that 0032 replaced goes. Web servers of the release before read by it."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0036_remove_delivery_of_message"),
    ]

    operations = [
        migrations.RemoveIndex("delivery", "delivery_of_contact"),
    ]
