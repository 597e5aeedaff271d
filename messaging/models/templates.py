"""Templates with their versions, and partials."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from messaging.models.choices import CHANNEL_CHOICES
from rme.tenants.models import Organization


class Template(models.Model):
    """A template for one language and channel. Its versions have the texts."""

    organization = models.ForeignKey(Organization, models.CASCADE, related_name="templates")
    name = models.CharField(
        max_length=200, validators=[RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    )
    language = models.CharField(
        max_length=16, validators=[RegexValidator(r"^[a-z]{2,3}(_[A-Z]{2})?$", _("Like en_GB."))]
    )
    channel = models.CharField(max_length=10, choices=CHANNEL_CHOICES)
    category = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    archived_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text=_("Empty: not archived. Publishing a version ends it."),
    )

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                fields=["organization", "name", "language", "channel"], name="template_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.language}, {self.channel})"


class Version(models.Model):
    """What versions of templates and partials share. One that was ACTIVE is never edited."""

    class State(models.TextChoices):
        DRAFT = "DRAFT", _("Draft")
        ACTIVE = "ACTIVE", _("Active")
        ARCHIVED = "ARCHIVED", _("Archived")

    OWNER: ClassVar[str]
    """The name of the foreign key to what this is a version of."""
    TEXTS: ClassVar[tuple[str, ...]]
    """The fields that people write."""
    UNREVIEWED: ClassVar[Mapping[str, object]] = {"review_by": "", "approved_by": ""}
    """What a change of a draft resets: its review doesn't count any more."""

    version = models.PositiveIntegerField(editable=False)
    state = models.CharField(max_length=8, choices=State.choices, default=State.DRAFT)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    activated_at = models.DateTimeField(null=True, editable=False)

    # A draft: who wrote it, and who is to look at it.
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

    class Meta:
        abstract = True

    @property
    def organization_id(self) -> str:
        """The id of the organization that the version belongs to."""
        return str(getattr(self, self.OWNER).organization_id)


class TemplateVersion(Version):
    """One version of a template."""

    OWNER = "template"
    TEXTS = (
        *("subject", "text", "html", "mjml", "title", "body", "data", "badge", "image", "link"),
        "variables",
    )
    UNREVIEWED: ClassVar[Mapping[str, object]] = {
        **Version.UNREVIEWED,
        "publish_at": None,
        "publish_by": "",
        "publish_by_id": None,
        "publish_problem": "",
    }

    template = models.ForeignKey(Template, models.CASCADE, related_name="versions")
    subject = models.CharField(max_length=998, blank=True)
    text = models.TextField(blank=True)
    html = models.TextField(blank=True)
    mjml = models.TextField(
        blank=True, help_text=_("MJML instead of HTML. rme compiles it when you publish.")
    )
    compiled_html = models.TextField(blank=True, editable=False)
    title = models.CharField(max_length=1000, blank=True)
    body = models.TextField(blank=True)
    data = models.JSONField(default=dict, blank=True)
    badge = models.PositiveIntegerField(null=True, blank=True)
    image = models.CharField(max_length=2000, blank=True)
    link = models.CharField(max_length=2000, blank=True)
    variables = models.JSONField(
        default=dict, blank=True, help_text=_("JSON Schema of the variables that the text needs.")
    )

    # A draft that is made active at a time.
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
    text = models.TextField(help_text=_("Liquid. It sees only what `render` passes to it."))
    """The text of the active version. Only `messaging.content.partials` writes it."""
    is_published = models.BooleanField(default=True, db_default=True, editable=False)
    """Whether a version is or was active. Templates don't see a partial before that."""
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["organization", "name"], name="partial_once")
        ]

    def __str__(self) -> str:
        return self.name


class PartialVersion(Version):
    """One version of a partial."""

    OWNER = "partial"
    TEXTS = ("text",)

    partial = models.ForeignKey(Partial, models.CASCADE, related_name="versions")
    text = models.TextField()

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["partial", "version"], name="partial_version_once"),
            models.UniqueConstraint(
                fields=["partial"],
                condition=models.Q(state="ACTIVE"),
                name="one_active_partial_version",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.partial} v{self.version}"
