"""An editor becomes an operator, the role with exactly an editor's rights.

The release before does not know operators: its processes show them nothing until they end.
"""

from django.db import migrations


def rename(apps, old, new):
    apps.get_model("tenants", "Membership").objects.filter(role=old).update(role=new)


class Migration(migrations.Migration):
    dependencies = [("tenants", "0005_role_length")]

    operations = [
        migrations.RunPython(
            lambda apps, schema: rename(apps, "EDITOR", "OPERATOR"),
            lambda apps, schema: rename(apps, "OPERATOR", "EDITOR"),
        )
    ]
