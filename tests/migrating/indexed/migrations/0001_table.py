from django.db import migrations, models


class Migration(migrations.Migration):
    operations = [
        migrations.CreateModel(
            "Row", [("id", models.BigAutoField(primary_key=True)), ("name", models.TextField())]
        )
    ]
