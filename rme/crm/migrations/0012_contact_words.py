"""The index by which the console finds people by words of their names and ends of their numbers."""

from django.contrib.postgres.indexes import GinIndex
from django.db import migrations

from rme.core.db.indexes import AddTableIndex
from rme.crm.words import ContactWords


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("crm", "0011_mended_imports")]

    operations = [AddTableIndex("contact", GinIndex(ContactWords(), name="contact_by_words"))]
