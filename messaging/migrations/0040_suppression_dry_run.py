"""Imports of suppressions that wait for their columns, and dry runs of them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0039_provider_history"),
    ]

    operations = [
        migrations.AddField(
            model_name="suppressionimport",
            name="dry_run",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="suppressionimportpart",
            name="checked",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AlterField(
            model_name="suppressionimport",
            name="state",
            field=models.CharField(
                choices=[
                    ("PREPARED", "Waiting for its columns"),
                    ("RUNNING", "Running"),
                    ("DONE", "Done"),
                    ("CANCELLED", "Cancelled"),
                ],
                default="RUNNING",
                max_length=10,
            ),
        ),
    ]
