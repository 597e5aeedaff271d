"""Name models and fields in the field's words: state only, as tables and columns keep their names."""

from django.db import migrations, models
from django.db.models.functions import Now

WEBHOOK_DELIVERY = [
    migrations.AlterModelTable("notice", "messaging_notice"),
    migrations.RenameModel("Notice", "WebhookDelivery"),
    migrations.RemoveIndex("webhookdelivery", "notice_age"),
    migrations.RenameField("webhookdelivery", "noted_at", "queued_at"),
    migrations.AlterField(
        model_name="webhookdelivery",
        name="queued_at",
        field=models.DateTimeField(
            db_column="noted_at", db_default=Now(), help_text="When it was queued or replayed."
        ),
    ),
    migrations.AddIndex(
        "webhookdelivery", models.Index(fields=["status", "queued_at"], name="notice_age")
    ),
]
INBOUND_SMS = [
    migrations.AlterModelTable("partedletter", "messaging_partedletter"),
    migrations.RenameModel("PartedLetter", "InboundSmsParts"),
    migrations.RenameField("inboundsmsparts", "heard", "complete"),
    migrations.AlterField(
        model_name="inboundsmsparts",
        name="complete",
        field=models.BooleanField(db_column="heard", default=False),
    ),
    migrations.RenameField("callback", "letter", "is_inbound_sms"),
    migrations.AlterField(
        model_name="callback",
        name="is_inbound_sms",
        field=models.BooleanField(db_column="letter", db_default=False),
    ),
]


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0014_waiting_index"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[*WEBHOOK_DELIVERY, *INBOUND_SMS]),
    ]
