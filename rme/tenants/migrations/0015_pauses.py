"""The pause of a move has an id, by which the target learns what became of it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0014_moves")]

    operations = [
        migrations.AddField("move", "pause", models.UUIDField(null=True)),
        migrations.AddField("placement", "pause", models.UUIDField(null=True)),
    ]
