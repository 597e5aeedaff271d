"""What most messages have alike is null: one channel, the usual strategy. And the index that the
migration before replaced goes.
"""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0026_message_newest"),
    ]

    operations = [
        migrations.RemoveIndex("message", "message_history"),
        migrations.AlterField(
            model_name="message",
            name="channels",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=10), null=True, size=None
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="strategy",
            field=models.CharField(max_length=16, null=True),
        ),
    ]
