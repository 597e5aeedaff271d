from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("push", "0004_test_devices")]

    operations = [
        migrations.AddField(
            model_name="feedback",
            name="test",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
