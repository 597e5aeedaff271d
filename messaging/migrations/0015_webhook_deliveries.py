"""Name models and fields in the field's words. The tables and columns keep their names.

Nothing changes in the database, so the release before still runs.
"""

from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0014_waiting_index"),
    ]

    operations = [
        migrations.AlterModelTable("notice", "messaging_notice"),
        migrations.RenameModel("Notice", "WebhookDelivery"),
        migrations.AlterField(
            model_name="webhookdelivery",
            name="noted_at",
            field=models.DateTimeField(
                db_column="noted_at", db_default=Now(), help_text="When it was queued or replayed."
            ),
        ),
        migrations.RenameField("webhookdelivery", "noted_at", "queued_at"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveIndex("webhookdelivery", "notice_age"),
                migrations.AddIndex(
                    "webhookdelivery",
                    models.Index(fields=["status", "queued_at"], name="notice_age"),
                ),
            ]
        ),
        migrations.AlterModelTable("partedletter", "messaging_partedletter"),
        migrations.RenameModel("PartedLetter", "InboundSmsParts"),
        migrations.AlterField(
            model_name="inboundsmsparts",
            name="heard",
            field=models.BooleanField(db_column="heard", default=False),
        ),
        migrations.RenameField("inboundsmsparts", "heard", "complete"),
        migrations.AlterField(
            model_name="callback",
            name="letter",
            field=models.BooleanField(db_column="letter", db_default=False),
        ),
        migrations.RenameField("callback", "letter", "is_inbound_sms"),
    ]
