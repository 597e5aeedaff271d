from django.db import migrations, models

from rme.core.db.indexes import AddTableIndex


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("indexed", "0001_table")]
    operations = [AddTableIndex("row", models.Index(fields=["name"], name="indexed_name"))]
