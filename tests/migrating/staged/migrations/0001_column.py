from django.db import migrations


class Migration(migrations.Migration):
    operations = [
        migrations.RunSQL("CREATE TABLE staged (old int, new int)", "DROP TABLE staged"),
    ]
