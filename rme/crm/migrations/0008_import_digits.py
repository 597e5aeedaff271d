"""How an import reads phone numbers without a plus."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("crm", "0007_contact_names"),
    ]

    operations = [
        migrations.AddField(
            model_name="recordimport",
            name="digits",
            field=models.CharField(
                choices=[
                    ("UNSAID", "UNSAID"),
                    ("NATIONAL", "NATIONAL"),
                    ("INTERNATIONAL", "INTERNATIONAL"),
                ],
                db_default="UNSAID",
                default="UNSAID",
                max_length=13,
            ),
        ),
    ]
