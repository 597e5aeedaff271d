"""Remove the column that only the release before reads and writes."""

from django.db import migrations


class Migration(migrations.Migration):
    post_deploy = True  # the release before still writes it

    dependencies = [("messaging", "0056_remove_notice_tried")]

    operations = [migrations.RemoveField("webhookdelivery", "tried_at")]
