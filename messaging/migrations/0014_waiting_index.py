"""Sizes of contents, so that claims are bounded in bytes, and an index of the oldest that is due."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0013_parted_letters"),
    ]

    operations = [
        migrations.AddField(
            model_name="messagecontent",
            name="size",
            field=models.IntegerField(null=True),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                models.F("status"),
                models.F("channel"),
                models.F("priority"),
                models.OrderBy(models.F("due_at"), nulls_first=True),
                condition=models.Q(
                    ("due_at__isnull", False), ("status__in", ["ACCEPTED", "SCHEDULED"])
                ),
                name="delivery_waiting",
            ),
        ),
    ]
