"""Remove an index that contact_by_words replaces."""

from django.db import migrations

from rme.core.db.indexes import RemoveTableIndex


class Migration(migrations.Migration):
    atomic = False
    post_deploy = True  # the release before reads by it
    dependencies = [("crm", "0015_remove_contact_by_email")]

    operations = [RemoveTableIndex("contact", "contact_by_last_name")]
