"""Recipients' objections by address, which apply to every contact with it."""

import django.db.models.deletion
from django.db import migrations, models

import rme.core.ids


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0041_sender_domain_records"),
        ("tenants", "0015_pauses"),
    ]

    operations = [
        migrations.CreateModel(
            name="AddressOptOut",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=rme.core.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("address", models.CharField(max_length=320)),
                (
                    "channel",
                    models.CharField(
                        choices=[("EMAIL", "EMAIL"), ("SMS", "SMS"), ("PUSH", "PUSH")],
                        max_length=10,
                    ),
                ),
                ("category", models.CharField(max_length=64)),
                ("occurred_at", models.DateTimeField()),
                ("entry", models.UUIDField()),
                (
                    "organization",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="tenants.organization",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("organization", "address", "channel", "category"),
                        name="address_opt_out_once",
                    )
                ],
            },
        ),
    ]
