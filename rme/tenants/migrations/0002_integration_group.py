"""The permission set that an application's user must hold."""

from django.db import migrations

GROUP = "MSG_Integration_User"


def create(apps, schema_editor):
    apps.get_model("auth", "Group").objects.get_or_create(name=GROUP)


class Migration(migrations.Migration):
    dependencies = [("tenants", "0001_initial")]

    operations = [migrations.RunPython(create, migrations.RunPython.noop)]
