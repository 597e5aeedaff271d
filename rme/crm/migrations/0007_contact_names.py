"""Indexes by which the console finds people by the beginning of a name."""

from django.contrib.postgres.indexes import OpClass
from django.db import migrations, models
from django.db.models.functions import Lower


def _index(column, name):
    return models.Index("organization", OpClass(Lower(column), name="text_pattern_ops"), name=name)


class Migration(migrations.Migration):
    dependencies = [
        ("crm", "0006_import_preparation"),
    ]

    operations = [
        migrations.AddIndex("contact", _index("last_name", "contact_by_last_name")),
        migrations.AddIndex("contact", _index("first_name", "contact_by_first_name")),
    ]
