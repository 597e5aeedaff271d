from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("staged", "0002_remove_column")]
    operations = [migrations.RunSQL("SELECT new FROM staged", "SELECT new FROM staged")]
