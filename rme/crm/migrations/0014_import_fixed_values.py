"""The values of columns that the file of an import doesn't have."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("crm", "0013_contact_email_start"),
    ]

    operations = [
        migrations.AddField(
            model_name="recordimport",
            name="fixed",
            field=models.JSONField(db_default={}, default=dict),
        ),
    ]
