from django.db import migrations


class Migration(migrations.Migration):
    post_deploy = True
    dependencies = [("staged", "0001_column")]
    operations = [
        migrations.RunSQL(
            "ALTER TABLE staged DROP COLUMN old", "ALTER TABLE staged ADD COLUMN old int"
        ),
    ]
