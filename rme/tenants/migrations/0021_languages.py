import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0020_plain_labels"),
    ]

    operations = [
        migrations.AddField(
            model_name="organization",
            name="languages",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=16),
                blank=True,
                db_default=[],
                default=list,
                help_text=(
                    "Forms offer these languages and the one above. If you choose none, they "
                    "offer all."
                ),
            ),
        ),
    ]
