"""Sender domains as A-labels (RFC 5890), as callers' domains are compared and mail is sent."""

from django.db import migrations

from rme.core import addresses


def convert(apps, schema_editor):
    model = apps.get_model("messaging", "SenderDomain")
    for row in model.objects.filter(domain__regex=r"[^a-z0-9.-]"):
        domain = addresses.domain(row.domain)
        taken = model.objects.filter(organization_id=row.organization_id, domain=domain)
        if domain and not taken.exists():
            model.objects.filter(pk=row.pk).update(domain=domain)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("messaging", "0044_import_digits")]

    operations = [migrations.RunPython(convert, migrations.RunPython.noop)]
