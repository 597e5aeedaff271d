"""Cover the addresses of objections that the release before recorded during the upgrade, too.

It ran beside 0043 and knew nothing of objections by address.
"""

from importlib import import_module

from django.db import migrations

earlier = import_module("messaging.migrations.0043_earlier_address_opt_outs")


class Migration(migrations.Migration):
    atomic = False
    post_deploy = True  # when no process of the release before runs any more

    dependencies = [("messaging", "0053_plain_labels")]

    operations = [
        migrations.RunPython(earlier.cover_addresses, migrations.RunPython.noop, elidable=True)
    ]
