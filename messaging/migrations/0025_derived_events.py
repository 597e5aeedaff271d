"""Columns from which the events `accepted` and `sent` are derived; older rows have stored ones."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0024_template_drafts"),
    ]

    operations = [
        migrations.AddField(
            model_name="delivery",
            name="accepted_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="delivery",
            name="accepted_channel",
            field=models.CharField(max_length=10, null=True),
        ),
        migrations.AddField(
            model_name="delivery",
            name="accepted_provider",
            field=models.CharField(max_length=64, null=True),
        ),
        migrations.AddField(
            model_name="attempt",
            name="sent_at",
            field=models.DateTimeField(null=True),
        ),
    ]
