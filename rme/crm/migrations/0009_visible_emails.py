"""Remove invisible characters from stored email addresses, since look-ups compare these.

It works in batches, each in its own transaction. Invalid addresses stay as they are, and so do
addresses that another process changes meanwhile.
"""

from uuid import UUID

from django.db import migrations

from rme.core import addresses

BATCH = 1000


def clean_emails(apps, schema_editor):
    for name in ("Contact", "EventRegistration"):
        model, last = apps.get_model("crm", name), UUID(int=0)
        while rows := _after(model, last):
            for key, stored in rows:
                typed = addresses.typed_email(stored)
                if typed and typed != stored:
                    model.objects.filter(pk=key, email=stored).update(email=typed)
            last = rows[-1][0]


def _after(model, last):
    """Return the next rows whose email has characters beyond ASCII; most tables have few."""
    rows = model.objects.filter(pk__gt=last, email__regex=r"[^\x01-\x7f]").order_by("pk")
    return list(rows.values_list("pk", "email")[:BATCH])


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("crm", "0008_import_digits")]

    operations = [migrations.RunPython(clean_emails, migrations.RunPython.noop)]
