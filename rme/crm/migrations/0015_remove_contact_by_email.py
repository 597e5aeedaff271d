"""Remove an index that contact_by_email_start replaces."""

from django.db import migrations

from rme.core.db.indexes import RemoveTableIndex


class Migration(migrations.Migration):
    atomic = False
    post_deploy = True  # the release before reads by it
    dependencies = [("crm", "0014_import_fixed_values")]

    operations = [RemoveTableIndex("contact", "contact_by_email")]
