from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("messaging", "0021_room_for_updates")]

    operations = [
        # A longer varchar changes the catalogue alone: no row is rewritten.
        migrations.AlterField(
            "bulkaction",
            "kind",
            models.CharField(
                choices=[
                    ("CANCEL", "Cancel scheduled sends"),
                    ("RESEND", "Send again"),
                    ("LIFT", "Lift suppressions"),
                    ("SEND_AGAIN", "Manual review: send again"),
                    ("GIVE_UP", "Manual review: give up"),
                ],
                max_length=16,
            ),
        ),
    ]
