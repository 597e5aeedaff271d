"""The index by which the console lists an organization's contacts, the newest first."""

from django.db import migrations, models

from rme.core.db.indexes import AddTableIndex


class Migration(migrations.Migration):
    atomic = False
    post_deploy = True  # as those that it comes after
    dependencies = [("crm", "0017_remove_contact_by_first_name")]

    operations = [
        AddTableIndex(
            "contact",
            models.Index(fields=["organization", "id"], name="contact_by_organization"),
        )
    ]
