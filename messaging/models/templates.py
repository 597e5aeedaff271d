"""Templates with their versions, and partials."""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.functions import Now

from messaging.models.policy import CHANNEL_CHOICES
from rme.tenants.models import Organization


class Template(models.Model):
    """A template for one language and channel. Its versions have the texts."""

    organization = models.ForeignKey(Organization, models.CASCADE, related_name="templates")
    name = models.CharField(
        max_length=200, validators=[RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    )
    language = models.CharField(
        max_length=16, validators=[RegexValidator(r"^[a-z]{2,3}(_[A-Z]{2})?$", "Like en_GB.")]
    )
    channel = models.CharField(max_length=10, choices=CHANNEL_CHOICES)
    category = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    archived_at = models.DateTimeField(
        null=True, editable=False, help_text="None: not archived. To make a version active ends it."
    )

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                fields=["organization", "name", "language", "channel"], name="template_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.language}, {self.channel})"


class TemplateVersion(models.Model):
    """One version of a template. A version that was ACTIVE is never edited."""

    class State(models.TextChoices):
        DRAFT = "DRAFT"
        ACTIVE = "ACTIVE"
        ARCHIVED = "ARCHIVED"

    template = models.ForeignKey(Template, models.CASCADE, related_name="versions")
    version = models.PositiveIntegerField(editable=False)
    state = models.CharField(max_length=8, choices=State.choices, default=State.DRAFT)
    subject = models.CharField(max_length=998, blank=True)
    text = models.TextField(blank=True)
    html = models.TextField(blank=True)
    mjml = models.TextField(blank=True, help_text="Instead of HTML: MJML, compiled when activated.")
    compiled_html = models.TextField(blank=True, editable=False)
    title = models.CharField(max_length=1000, blank=True)
    body = models.TextField(blank=True)
    data = models.JSONField(default=dict, blank=True)
    badge = models.PositiveIntegerField(null=True, blank=True)
    image = models.CharField(max_length=2000, blank=True)
    link = models.CharField(max_length=2000, blank=True)
    variables = models.JSONField(
        default=dict, blank=True, help_text="JSON Schema of the variables that the text needs."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    activated_at = models.DateTimeField(null=True, editable=False)

    # A draft: who wrote it, who is to look at it, and when it is made active.
    revision = models.PositiveIntegerField(default=1, db_default=1, editable=False)
    """Counts the changes of a draft, so that nobody overwrites what they have not seen."""
    authors = ArrayField(models.BigIntegerField(), default=list, db_default=[], editable=False)
    """The ids of all who wrote it: none of them may be its reviewer."""
    edited_by = models.CharField(max_length=150, default="", db_default="", editable=False)
    edited_at = models.DateTimeField(null=True, editable=False)
    review_by = models.CharField(max_length=150, default="", db_default="", editable=False)
    """Who asked for a review; empty: nobody did."""
    approved_by = models.CharField(max_length=150, default="", db_default="", editable=False)
    """Who approved it, having written none of it; a change ends that."""
    publish_at = models.DateTimeField(null=True, editable=False)
    publish_by = models.CharField(max_length=150, default="", db_default="", editable=False)
    publish_by_id = models.BigIntegerField(null=True, editable=False)
    publish_problem = models.CharField(max_length=500, default="", db_default="", editable=False)
    """Why it could not be made active at its time."""

    class Meta:
        indexes: ClassVar[list[Any]] = [
            models.Index(
                fields=["publish_at"],
                name="version_to_publish",
                condition=models.Q(publish_at__isnull=False),
            )
        ]
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["template", "version"], name="version_once"),
            models.UniqueConstraint(
                fields=["template"],
                condition=models.Q(state="ACTIVE"),
                name="one_active_version",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.template} v{self.version}"


class Partial(models.Model):
    """A text that the organization's templates include: `{% render 'footer' %}`."""

    organization = models.ForeignKey(Organization, models.CASCADE, related_name="partials")
    name = models.CharField(
        max_length=64, validators=[RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
    )
    text = models.TextField(help_text="Liquid. It sees only what `render` gives it.")
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["organization", "name"], name="partial_once")
        ]

    def __str__(self) -> str:
        return self.name
