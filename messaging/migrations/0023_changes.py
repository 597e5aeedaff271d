from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models.fields.json import KeyTextTransform


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("messaging", "0022_manual_review_actions")]

    operations = [
        AddIndexConcurrently(
            "webhookdelivery",
            models.Index(
                KeyTextTransform("contactId", "data"),
                name="notice_contact",
                condition=models.Q(data__isnull=False),
            ),
        ),
    ]
