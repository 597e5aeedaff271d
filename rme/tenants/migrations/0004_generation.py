"""What is counted up when an application's tokens are revoked."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0003_limits_and_brand"),
    ]

    operations = [
        migrations.AddField(
            model_name="application",
            name="generation",
            field=models.IntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.AlterField(
            model_name="applicationkey",
            name="material",
            field=models.TextField(
                help_text="A PEM public key, a PEM certificate, a JWK or a JWKS. Changing or deleting it revokes all access tokens of the application, within 30 seconds."
            ),
        ),
    ]
