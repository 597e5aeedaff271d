import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0023_changes"),
    ]

    operations = [
        migrations.AddField(
            model_name="sendingrules",
            name="review_templates",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="A version of a template is made active only with the consent of a person who wrote none of it.",
            ),
        ),
        migrations.AddField(
            model_name="template",
            name="archived_at",
            field=models.DateTimeField(
                editable=False,
                help_text="None: not archived. To make a version active ends it.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="templateversion",
            name="approved_by",
            field=models.CharField(db_default="", default="", editable=False, max_length=150),
        ),
        migrations.AddField(
            model_name="templateversion",
            name="authors",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(),
                db_default=[],
                default=list,
                editable=False,
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="templateversion",
            name="edited_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="templateversion",
            name="edited_by",
            field=models.CharField(db_default="", default="", editable=False, max_length=150),
        ),
        migrations.AddField(
            model_name="templateversion",
            name="publish_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="templateversion",
            name="publish_by",
            field=models.CharField(db_default="", default="", editable=False, max_length=150),
        ),
        migrations.AddField(
            model_name="templateversion",
            name="publish_by_id",
            field=models.BigIntegerField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="templateversion",
            name="publish_problem",
            field=models.CharField(db_default="", default="", editable=False, max_length=500),
        ),
        migrations.AddField(
            model_name="templateversion",
            name="review_by",
            field=models.CharField(db_default="", default="", editable=False, max_length=150),
        ),
        migrations.AddField(
            model_name="templateversion",
            name="revision",
            field=models.PositiveIntegerField(db_default=1, default=1, editable=False),
        ),
        migrations.AddIndex(
            model_name="templateversion",
            index=models.Index(
                condition=models.Q(("publish_at__isnull", False)),
                fields=["publish_at"],
                name="version_to_publish",
            ),
        ),
    ]
