from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("push", "0003_browsers")]

    operations = [
        migrations.AddField(
            model_name="device",
            name="test",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
    ]
