"""Bot settings of organizations, and recent creates."""

from typing import Any, ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from rme.tenants.models import Organization


class BotSettings(models.Model):
    """The settings of an organization's bots. Without a row the defaults apply."""

    class OnDuplicate(models.TextChoices):
        RETURN_EXISTING = "return_existing", _("Return the existing one")
        REJECT = "reject", _("Reject (409)")
        ALLOW = "allow", _("Create another")

    organization = models.OneToOneField(
        Organization, models.CASCADE, primary_key=True, related_name="bot_settings"
    )
    always_200 = models.BooleanField(
        _("always 200"),
        default=False,
        help_text=_(
            "Always respond with HTTP status 200, for bot builders that can't read "
            "others. The code in the body doesn't change."
        ),
    )
    max_records = models.PositiveSmallIntegerField(
        default=10,
        validators=[MinValueValidator(1), MaxValueValidator(50)],
        help_text=_("The most records in a response."),
    )
    on_duplicate_contact = models.CharField(
        max_length=20,
        choices=OnDuplicate.choices,
        default=OnDuplicate.RETURN_EXISTING,
        help_text=_("For a new contact whose email address another contact has."),
    )
    on_duplicate_account = models.CharField(
        max_length=20,
        choices=OnDuplicate.choices,
        default=OnDuplicate.RETURN_EXISTING,
        help_text=_("For a new account whose name another account has."),
    )

    class Meta:
        verbose_name = verbose_name_plural = _("bot settings")

    def __str__(self) -> str:
        return gettext("Bot settings of %(organization_id)s") % {
            "organization_id": self.organization_id
        }


class Creation(models.Model):
    """A create that may be repeated, and the record it created.

    `record_id` is empty while the create runs, and stays empty if its outcome is unknown.
    """

    organization = models.ForeignKey(Organization, models.CASCADE, db_index=False)
    digest = models.CharField(max_length=64)
    record_id = models.CharField(max_length=255, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(db_index=True)  # bot.idempotency deletes by it

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["organization", "digest"], name="creation_once")
        ]

    def __str__(self) -> str:
        return gettext("%(value)s at %(created_at)s") % {
            "value": self.record_id or "unknown",
            "created_at": self.created_at,
        }
