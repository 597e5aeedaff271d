"""People's long SMS whose parts come one by one."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0012_polling"),
    ]

    operations = [
        migrations.CreateModel(
            name="PartedLetter",
            fields=[
                ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("account_id", models.BigIntegerField()),
                ("texts", models.JSONField(default=dict)),
                ("heard", models.BooleanField(default=False)),
                ("received_at", models.DateTimeField()),
            ],
        ),
    ]
