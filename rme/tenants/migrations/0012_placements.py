"""The placements of organizations, and the function by which a statement refuses to write."""

from django.db import migrations, models
from django.db.models.functions import Now

# Volatile, so that it sees what was committed after its statement began.
REFUSE = """
CREATE FUNCTION refuse_elsewhere(given text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  found_id text;
BEGIN
  SELECT organization_id INTO found_id FROM tenants_placement
    WHERE organization_id = ANY(given) AND phase <> 'LEAVING' LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'The organization % takes no writes here.', found_id USING ERRCODE = 'RM421';
  END IF;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0011_request_log")]

    operations = [
        migrations.CreateModel(
            name="Placement",
            fields=[
                (
                    "organization_id",
                    models.CharField(max_length=64, primary_key=True, serialize=False),
                ),
                (
                    "phase",
                    models.CharField(
                        choices=[
                            ("ARRIVING", "Arriving: copied from another cell, which serves it"),
                            ("LEAVING", "Leaving: calls are accepted, nothing is sent"),
                            ("PAUSED", "Paused: nothing is written, for seconds"),
                            ("MOVED", "Moved: another cell serves it"),
                        ],
                        max_length=8,
                    ),
                ),
                ("cell", models.CharField(max_length=32)),
                ("since", models.DateTimeField(db_default=Now())),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(phase__in=["ARRIVING", "LEAVING", "PAUSED", "MOVED"]),
                        name="placement_phase_known",
                    )
                ],
            },
        ),
        migrations.RunSQL(REFUSE, "DROP FUNCTION refuse_elsewhere(text[])"),
    ]
