"""How an import reads phone numbers without a plus."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0043_earlier_address_opt_outs"),
    ]

    operations = [
        migrations.AddField(
            model_name="suppressionimport",
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
