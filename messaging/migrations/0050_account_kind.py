"""The kinds of provider accounts are no longer part of the model: no SQL."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("messaging", "0049_import_encoding")]

    operations = [
        migrations.AlterField("provideraccount", "kind", models.CharField(max_length=32)),
    ]
