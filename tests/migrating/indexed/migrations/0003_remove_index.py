from django.db import migrations

from rme.core.db.indexes import RemoveTableIndex


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("indexed", "0002_index")]
    operations = [RemoveTableIndex("row", "indexed_name")]
