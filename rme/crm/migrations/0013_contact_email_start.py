"""The index by which contacts are found by an email address, whole or from its beginning."""

from django.db import migrations, models

from rme.core.db.indexes import AddTableIndex


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("crm", "0012_contact_words")]

    operations = [
        AddTableIndex(
            "contact",
            models.Index(
                fields=["organization", "email_folded"],
                opclasses=["varchar_ops", "varchar_pattern_ops"],
                name="contact_by_email_start",
            ),
        )
    ]
