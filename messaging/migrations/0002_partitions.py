"""The partitions of the first months; the beat job makes those that follow."""

from datetime import UTC, datetime

from django.db import migrations

from rme.core.db import partitions

TABLES = ["message", "messagecontent", "delivery", "attempt", "event"]


def create(apps, schema_editor):
    partitions.create_ahead([f"messaging_{table}" for table in TABLES], now=datetime.now(UTC))


class Migration(migrations.Migration):
    dependencies = [("messaging", "0001_initial")]

    operations = [migrations.RunPython(create, migrations.RunPython.noop)]
