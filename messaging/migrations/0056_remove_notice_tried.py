"""Remove the index of the column that only the release before reads."""

from django.db import migrations

from rme.core.db.indexes import RemoveTableIndex


class Migration(migrations.Migration):
    atomic = False
    post_deploy = True  # the release before reads it, for the endpoint's page

    dependencies = [("messaging", "0055_normal_addresses")]

    operations = [RemoveTableIndex("webhookdelivery", "notice_tried")]
