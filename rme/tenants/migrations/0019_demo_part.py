"""The mark of the organizations that the demo has made."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0018_guess_counts")]

    operations = [
        migrations.AddField(
            "organization",
            "demo_part",
            models.CharField(max_length=8, editable=False, blank=True, default="", db_default=""),
        ),
    ]
