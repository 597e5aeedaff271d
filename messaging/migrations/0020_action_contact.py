from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("messaging", "0019_action_actor")]

    operations = [
        migrations.AddField(
            "bulkaction",
            "contact_id",
            models.CharField(db_default="", default="", max_length=64),
        ),
    ]
