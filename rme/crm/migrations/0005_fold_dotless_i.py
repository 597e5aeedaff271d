from django.db import migrations

from rme.crm.folding import account_name


def fold_again(apps, schema_editor):
    """Fold the names that were folded otherwise before: those with a dotless i, which are few."""
    Account = apps.get_model("crm", "Account")
    rows = list(Account.objects.filter(name__contains="ı").only("pk", "name"))
    for row in rows:
        row.name_folded = account_name(row.name)
    Account.objects.bulk_update(rows, ["name_folded"], batch_size=1000)


class Migration(migrations.Migration):
    dependencies = [("crm", "0004_case_comments")]

    operations = [migrations.RunPython(fold_again, migrations.RunPython.noop)]
