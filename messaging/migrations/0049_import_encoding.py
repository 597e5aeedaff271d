"""The encoding in which an import's file was read."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0048_partial_versions"),
    ]

    operations = [
        migrations.AddField(
            model_name="suppressionimport",
            name="encoding",
            field=models.CharField(db_default="", default="", max_length=12),
        ),
    ]
