"""The address that the person behind an account has proven, and invitations that prove one."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0015_pauses")]

    operations = [
        migrations.AddField(
            "user",
            "proven_email",
            models.CharField(max_length=254, editable=False, blank=True, default="", db_default=""),
        ),
        migrations.AddField(
            "invitation",
            "mailed",
            models.BooleanField(default=False, db_default=False, editable=False),
        ),
    ]
