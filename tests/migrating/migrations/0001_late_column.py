from django.db import migrations


class Migration(migrations.Migration):
    operations = [
        migrations.RunSQL(
            "ALTER TABLE messaging_message ADD COLUMN late integer",
            "ALTER TABLE messaging_message DROP COLUMN late",
        )
    ]
