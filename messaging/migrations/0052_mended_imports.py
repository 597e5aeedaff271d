"""What an import of suppressions needs to change its columns and to mend bad rows."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0051_list_columns"),
    ]

    operations = [
        migrations.AddField(
            model_name="suppressionimport",
            name="titles",
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.AddField(
            model_name="suppressionimport",
            name="fixed",
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.AddField(
            model_name="suppressionimport",
            name="mends",
            field=models.JSONField(db_default=[], default=list),
        ),
    ]
