"""The pause of a move has an id, and a copy that is whole waits for the switch as READY."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0014_moves")]

    operations = [
        migrations.AddField("move", "pause", models.UUIDField(null=True)),
        migrations.AddField("placement", "pause", models.UUIDField(null=True)),
        migrations.AlterField(
            "placement",
            "phase",
            models.CharField(
                choices=[
                    ("ARRIVING", "Arriving: copied from another cell, which serves it"),
                    ("READY", "Ready: copied whole, and served here once the other cell switches"),
                    ("LEAVING", "Leaving: calls are accepted, nothing is sent"),
                    ("PAUSED", "Paused: nothing is written, for seconds"),
                    ("MOVED", "Moved: another cell serves it"),
                ],
                max_length=8,
            ),
        ),
        migrations.RemoveConstraint("placement", "placement_phase_known"),
        migrations.AddConstraint(
            "placement",
            models.CheckConstraint(
                condition=models.Q(phase__in=["ARRIVING", "READY", "LEAVING", "PAUSED", "MOVED"]),
                name="placement_phase_known",
            ),
        ),
    ]
