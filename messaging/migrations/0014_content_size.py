"""The sizes of contents, so that claims are bounded in bytes. Older ones have none."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0013_parted_letters"),
    ]

    operations = [
        migrations.AddField(
            model_name="messagecontent",
            name="size",
            field=models.IntegerField(null=True),
        ),
    ]
