"""When a provider is to be asked what became of a message."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0011_letters"),
    ]

    operations = [
        migrations.AddField(
            model_name="providerreference",
            name="ask_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddIndex(
            model_name="providerreference",
            index=models.Index(
                fields=["account_id", "ask_at"],
                name="provider_reference_ask",
                condition=models.Q(ask_at__isnull=False),
            ),
        ),
    ]
