"""The encoding in which an import's file was read."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("crm", "0009_visible_emails"),
    ]

    operations = [
        migrations.AddField(
            model_name="recordimport",
            name="encoding",
            field=models.CharField(db_default="", default="", max_length=12),
        ),
    ]
