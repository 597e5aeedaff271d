"""The cell's own row, and the journal of moves between cells."""

from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [("tenants", "0013_person")]

    operations = [
        migrations.CreateModel(
            name="Cell",
            fields=[
                (
                    "id",
                    models.SmallIntegerField(default=1, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=32)),
                ("number", models.SmallIntegerField()),
                ("keys", models.JSONField(default=dict)),
            ],
        ),
        migrations.CreateModel(
            name="Move",
            fields=[
                (
                    "organization_id",
                    models.CharField(max_length=64, primary_key=True, serialize=False),
                ),
                ("cell", models.CharField(max_length=32)),
                (
                    "step",
                    models.CharField(
                        choices=[
                            ("COPYING", "Copying, while all goes on"),
                            ("PAUSING", "Pausing: from here to the switch nothing is sent"),
                            ("SWITCHED", "Switched: only the target's rows count"),
                            ("DONE", "Done: the rows here may be dropped"),
                        ],
                        max_length=8,
                    ),
                ),
                ("since", models.BigIntegerField(null=True)),
                ("copied", models.JSONField(default=list)),
                ("users", models.JSONField(default=dict)),
                ("began_at", models.DateTimeField(db_default=Now())),
            ],
        ),
    ]
