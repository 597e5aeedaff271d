from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("push", "0002_history_and_feedback")]

    operations = [
        migrations.AddIndex(
            model_name="device",
            index=models.Index(
                condition=models.Q(("active", True), ("platform", "WEB")),
                fields=["organization"],
                name="device_of_browser",
            ),
        )
    ]
