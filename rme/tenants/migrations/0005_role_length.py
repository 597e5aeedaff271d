from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0004_generation")]

    operations = [
        migrations.AlterField(
            model_name="membership",
            name="role",
            field=models.CharField(
                choices=[
                    ("OWNER", "Owner: everything, people and keys included"),
                    ("OPERATOR", "Operator: templates, contacts, consent, pauses"),
                    ("TEMPLATE_EDITOR", "Editor of templates: writes drafts"),
                    ("APPROVER", "Approver: makes versions of templates active"),
                    ("SUPPORT", "Support: messages and reasons; no contents, no whole addresses"),
                    ("VIEWER", "Viewer: reads everything"),
                    ("DEVELOPER", "Developer: applications, keys and webhooks"),
                ],
                max_length=20,
            ),
        )
    ]
