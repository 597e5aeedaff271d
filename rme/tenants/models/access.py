"""Organizations, their people and applications, and their keys."""

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from oauth2_provider.models import AbstractApplication

from rme.core import ids
from rme.core.zones import validate_zone
from rme.tenants.models import public_keys

INTEGRATION_GROUP = "MSG_Integration_User"
"""The permission set (a Django group) that an application's user must hold."""


def new_text_id() -> str:
    """Return a new id as text. Migrations refer to this name."""
    return ids.new_text_id()


ANY_CATEGORY = "*"
"""In `Application.send_categories`: every category, including those that you add later."""


def every_permission() -> list[str]:
    """Return all permissions of applications. Migrations refer to this name."""
    return list(Application.Permission.values)


def any_category() -> list[str]:
    """Return the categories of an application that may send all. Migrations refer to this name."""
    return [ANY_CATEGORY]


class Organization(models.Model):  # type: ignore[django-manager-missing]  # see Application
    """A tenant. Its id is the `org` of the bot API and may be chosen when it is made."""

    id = models.CharField(
        primary_key=True,
        max_length=64,
        default=new_text_id,
        validators=[RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")],
    )
    name = models.CharField(max_length=200)
    zone = models.CharField(
        max_length=64,
        default="UTC",
        validators=[validate_zone],
        help_text=_("For recipients whose own time zone is unknown, like Europe/Zurich."),
    )
    language = models.CharField(
        max_length=16,
        default="en_US",
        validators=[RegexValidator(r"^[a-z]{2,3}(_[A-Z]{2})?$", _("Like en_GB or de."))],
    )
    languages = ArrayField(
        models.CharField(max_length=16),
        default=list,
        db_default=[],
        blank=True,
        help_text=_(
            "Forms offer these languages and the one above. If you choose none, they offer all."
        ),
    )
    region = models.CharField(
        max_length=2,
        default="US",
        validators=[RegexValidator(r"^[A-Z]{2}$")],
        help_text=_("The country of phone numbers without a country code, like CH."),
    )
    locale_fallback = models.BooleanField(
        default=False,
        help_text=_("If a template lacks en_GB, use en, and then the organization's language."),
    )
    brand_color = models.CharField(
        max_length=7,
        default="#1f4e79",
        db_default="#1f4e79",
        validators=[RegexValidator(r"^#[0-9a-fA-F]{6}$", "Like #1f4e79.")],
        help_text=_("The colour of the pages that recipients see."),
    )
    calls_per_second = models.PositiveIntegerField(
        default=100,
        db_default=100,
        validators=[MinValueValidator(1)],
        help_text=_("API calls per second."),
    )
    calls_per_day = models.PositiveIntegerField(
        default=1_000_000,
        db_default=1_000_000,
        validators=[MinValueValidator(1)],
        help_text=_("API calls in 24 hours."),
    )
    simulator = models.BooleanField(
        default=False,
        db_default=False,
        help_text=_("Channels without a provider use the simulator, which delivers nothing."),
    )
    second_factor_required = models.BooleanField(
        default=False,
        db_default=False,
        help_text=_("People must set up a second factor before they can see any page."),
    )
    is_active = models.BooleanField(
        default=True, help_text=_("If it is off, rme accepts no token or key of the organization.")
    )
    demo_part = models.CharField(
        max_length=8, editable=False, blank=True, default="", db_default=""
    )
    """The part of the demo that this is, if `rme.demo` created it; else empty."""
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        return self.name


class User(AbstractUser):  # type: ignore[django-manager-missing]  # see Application
    """A person who uses the admin, or the integration user of an application."""

    person = models.UUIDField(unique=True, editable=False, db_default=RandomUUID())
    """The same for the accounts of one person in several deployments that know each other."""
    proven_email = models.CharField(
        max_length=254, editable=False, blank=True, default="", db_default=""
    )
    """The address that the person has proven to own: see `access.proven_addresses`."""


class Membership(models.Model):
    """A person's role in the admin of one organization."""

    class Role(models.TextChoices):
        OWNER = "OWNER", _("Owner: everything, people and keys included")
        OPERATOR = "OPERATOR", _("Operator: templates, contacts, consent, pauses")
        TEMPLATE_EDITOR = "TEMPLATE_EDITOR", _("Editor of templates: writes drafts")
        APPROVER = "APPROVER", _("Approver: makes versions of templates active")
        SUPPORT = "SUPPORT", _("Support: messages and reasons; no contents, no whole addresses")
        VIEWER = "VIEWER", _("Viewer: reads everything")
        DEVELOPER = "DEVELOPER", _("Developer: applications, keys and webhooks")

    organization = models.ForeignKey(Organization, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=20, choices=Role.choices)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["user", "organization"], name="one_role_a_person")
        ]

    def __str__(self) -> str:
        return gettext("%(user)s in %(organization)s: %(role)s") % {
            "user": self.user,
            "organization": self.organization,
            "role": self.role,
        }


class Invitation(models.Model):
    """An invitation by email into an organization. Only the digest of its token is stored."""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE, related_name="invitations")
    email = models.EmailField()
    role = models.CharField(max_length=20, choices=Membership.Role.choices)
    invited_by = models.ForeignKey(
        User, models.SET_NULL, null=True, editable=False, related_name="invitations_sent"
    )
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(editable=False)
    accepted_at = models.DateTimeField(null=True, editable=False)
    mailed = models.BooleanField(default=False, db_default=False, editable=False)
    """Whether the link only went to the address, so that using it proves the address."""

    def __str__(self) -> str:
        return gettext("%(email)s as %(role)s of %(organization)s") % {
            "email": self.email,
            "role": self.role,
            "organization": self.organization,
        }


class Application(AbstractApplication):
    """An OAuth application of one organization; it acts as one integration user."""

    class Mode(models.TextChoices):
        LIVE = "LIVE", _("Live")
        TEST = "TEST", _("Test: everything ends in the simulator")

    class Permission(models.TextChoices):
        """A permission of an application, besides sending."""

        READ_MESSAGES = "READ_MESSAGES", _("Read messages and their statuses")
        READ_PEOPLE = "READ_PEOPLE", _("Read contacts: previews and dry runs for a person")
        READ_CONSENT = "READ_CONSENT", _("Read consent")
        RECORD_CONSENT = "RECORD_CONSENT", _("Record consent")
        READ_SUPPRESSIONS = "READ_SUPPRESSIONS", _("Read suppressed addresses")
        CHANGE_SUPPRESSIONS = "CHANGE_SUPPRESSIONS", _("Add and lift suppressions")
        READ_DEVICES = "READ_DEVICES", _("Read devices")
        CHANGE_DEVICES = "CHANGE_DEVICES", _("Register and remove devices")
        READ_TEMPLATES = "READ_TEMPLATES", _("List and preview templates")
        READ_WEBHOOKS = "READ_WEBHOOKS", _("Read webhook endpoints")
        CHANGE_WEBHOOKS = "CHANGE_WEBHOOKS", _("Change webhook endpoints")
        READ_HEALTH = "READ_HEALTH", _("Read the health report")

    organization = models.ForeignKey(Organization, models.CASCADE, related_name="applications")
    mode = models.CharField(max_length=4, choices=Mode.choices, default=Mode.LIVE)
    permissions = ArrayField(
        models.CharField(max_length=32),
        default=every_permission,
        db_default=Permission.values,
        blank=True,
    )
    send_categories = ArrayField(
        models.CharField(max_length=64),
        default=any_category,
        db_default=[ANY_CATEGORY],
        blank=True,
        help_text=_("The categories that it may send. * stands for all."),
    )
    maker = models.UUIDField(null=True, editable=False)
    """The `User.person` who made or confirmed it; None: it is older than this column."""
    generation = models.IntegerField(default=0, db_default=0, editable=False)
    """Incremented when tokens are revoked: an earlier authentication then gets no token."""
    secret_used_at = models.DateTimeField(null=True, editable=False)
    """Known to the minute, as that of the others."""
    former_secret = models.CharField(max_length=255, blank=True, db_default="", editable=False)
    """The digest of the replaced secret, which is accepted until `former_until`."""
    former_until = models.DateTimeField(null=True, editable=False)
    former_used_at = models.DateTimeField(null=True, editable=False)
    key_used_at = models.DateTimeField(null=True, editable=False)
    """When one of its keys signed an assertion."""

    class Meta(AbstractApplication.Meta):
        constraints: ClassVar[list[Any]] = [
            models.CheckConstraint(
                condition=models.Q(mode__in=["LIVE", "TEST"]), name="application_mode_known"
            )
        ]


class ApplicationKey(models.Model):
    """A public key for an application's JWT assertions. Several may be valid, for rotation."""

    application = models.ForeignKey(Application, models.CASCADE, related_name="keys")
    name = models.CharField(max_length=100)
    material = models.TextField(
        help_text=_(
            "A PEM public key, a PEM certificate, a JWK or a JWKS. Changing or deleting it "
            "revokes all access tokens of the application, within 30 seconds."
        )
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Check that the material is a usable public key. Raise ValidationError."""
        try:
            public_keys.load(self.material)
        except ValueError as error:
            raise ValidationError({"material": str(error)}) from error


class Assertion(models.Model):
    """A used JWT assertion, stored until it expires so that it cannot be used twice."""

    digest = models.CharField(primary_key=True, max_length=64)
    expires_at = models.DateTimeField(db_index=True)  # read by the sweep that deletes old ones


class GuessCount(models.Model):
    """Guesses at a password, a code or a client secret that were counted while Redis was away."""

    key = models.CharField(primary_key=True, max_length=200)
    count = models.IntegerField()
    until = models.DateTimeField(db_index=True)  # read by guess_limits.purge


class ApiKey(models.Model):
    """A key of the bot API. Only the digest of its secret is stored."""

    organization = models.ForeignKey(Organization, models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100)
    public_id = models.CharField(max_length=32, unique=True, editable=False)
    digest = models.CharField(max_length=64, editable=False)
    actions = models.JSONField(
        default=list, blank=True, help_text=_("Allowed actions. Leave it empty to allow all.")
    )
    networks = models.JSONField(
        default=list,
        blank=True,
        help_text=_('Allowed networks, like ["192.0.2.0/24"]. Empty: all.'),
    )
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    maker = models.UUIDField(null=True, editable=False)
    """The `User.person` who made or confirmed it; None: it is older than this column."""
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        return f"{self.name} (rme_{self.public_id}_…)"
