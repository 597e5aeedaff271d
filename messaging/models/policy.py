"""An organization's policy: categories, sending rules, pauses, sender domains, accounts."""

import re
from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext, gettext_lazy

from messaging.domain.channels import Channel
from messaging.models.choices import CHANNEL_CHOICES
from push.models import Device
from rme.core import addresses
from rme.core.db.encrypted_fields import EncryptedTextField
from rme.tenants.models import Organization, new_text_id


class Category(models.Model):
    """A category of messages and its rules. TRANSACTIONAL and MARKETING need no row."""

    class Regime(models.TextChoices):
        OPT_IN = "OPT_IN", gettext_lazy("Opt-in: blocked until the person agrees")
        OPT_OUT = "OPT_OUT", gettext_lazy("Opt-out: allowed until the person objects")

    class OnUnknown(models.TextChoices):
        RESEND = "RESEND", gettext_lazy("Send again")
        HOLD = "HOLD", gettext_lazy("Hold for a receipt or an operator")

    organization = models.ForeignKey(Organization, models.CASCADE, related_name="categories")
    name = models.CharField(max_length=64, validators=[RegexValidator(r"^[A-Z][A-Z0-9_]{0,63}$")])
    regime = models.CharField(max_length=8, choices=Regime.choices, default=Regime.OPT_IN)
    on_unknown = models.CharField(max_length=8, choices=OnUnknown.choices, default=OnUnknown.HOLD)
    expires_after = models.PositiveIntegerField(
        default=4 * 3600,
        validators=[MinValueValidator(1), MaxValueValidator(30 * 86_400)],
        help_text=gettext_lazy("Seconds until a message that couldn't be sent expires."),
    )
    cap_count = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text=gettext_lazy("The most messages per contact in the window."),
    )
    cap_window = models.PositiveIntegerField(
        default=86_400, help_text=gettext_lazy("The window of the cap, in seconds.")
    )
    channel_order = ArrayField(
        models.CharField(max_length=10, choices=CHANNEL_CHOICES),
        default=list,
        blank=True,
        help_text=gettext_lazy("The order that channel AUTO tries. Empty: push, email, SMS."),
    )

    class Meta:
        verbose_name_plural = "categories"
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["organization", "name"], name="category_once")
        ]

    def __str__(self) -> str:
        return self.name


class SendingRules(models.Model):
    """An organization's quiet hours, limits and tracking. Without a row the defaults apply."""

    organization = models.OneToOneField(
        Organization, models.CASCADE, primary_key=True, related_name="sending_rules"
    )
    quiet_hours = models.JSONField(
        default=dict,
        blank=True,
        help_text=gettext_lazy(
            "By channel, in the recipient's zone: {"
            '"SMS": {"from": "21:00", "until": "08:00"}}. A send in between waits for the end.'
        ),
    )
    quiet_transactional = models.BooleanField(
        default=False, help_text=gettext_lazy("Quiet hours also apply to transactional messages.")
    )
    schedule_grace = models.PositiveIntegerField(
        default=3600,
        help_text=gettext_lazy(
            "How many seconds late a scheduled message may go after an outage. After "
            "that, marketing expires; transactional messages still go."
        ),
    )
    sends_per_second = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text=gettext_lazy("Messages accepted per second. Leave empty for no limit."),
    )
    sends_per_day = models.PositiveIntegerField(
        default=1_000_000, help_text=gettext_lazy("Messages accepted in 24 hours.")
    )
    double_opt_in = models.BooleanField(
        default=False,
        help_text=gettext_lazy(
            "When people opt in to email on the preference page, rme mails them a link. "
            "The opt-in counts once they follow it."
        ),
    )
    track_opens = models.BooleanField(
        default=False,
        db_default=False,
        help_text=gettext_lazy(
            "Emails carry an image that shows when they are opened. Say so in your "
            "privacy notice; many countries require consent."
        ),
    )
    track_clicks = models.BooleanField(
        default=False,
        db_default=False,
        help_text=gettext_lazy("Links in emails lead through rme, which records clicks."),
    )

    review_templates = models.BooleanField(
        default=False,
        db_default=False,
        help_text=gettext_lazy(
            "Someone who didn't write a version must approve it before it is published."
        ),
    )

    class Meta:
        verbose_name_plural = gettext_lazy("sending rules")

    def __str__(self) -> str:
        return gettext("Sending rules of %(organization_id)s") % {
            "organization_id": self.organization_id
        }


class Pause(models.Model):
    """A pause of sending. Paused deliveries wait, and are sent when it ends."""

    organization = models.ForeignKey(Organization, models.CASCADE)
    channel = models.CharField(max_length=10, choices=CHANNEL_CHOICES, blank=True)
    category = models.CharField(max_length=64, blank=True)
    template = models.CharField(max_length=200, blank=True)
    reason = models.CharField(max_length=500)
    ends_at = models.DateTimeField(
        null=True, blank=True, help_text=gettext_lazy("Leave empty to pause until you end it.")
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        scope = " ".join(filter(None, [self.channel, self.category, self.template]))
        return gettext("Pause of %(value)s") % {"value": scope or "everything"}


def _country_prefix(text: str) -> str | None:
    """Return a prefix of numbers in the form of E.164, or None."""
    match = re.fullmatch(r"(?:\+|00)?([1-9][0-9]{0,14})", addresses.cleaned(text))
    return f"+{match[1]}" if match else None


def _platform_or_app(text: str) -> str:
    """Return a platform's name in capitals; the name of an app stays as it is."""
    name = text.strip()
    return name.upper() if name.upper() in Device.Platform.values else name


_MATCHES = (
    (addresses.domain, gettext_lazy("a domain like example.com")),
    (_country_prefix, gettext_lazy("the beginning of numbers, like +41")),
)


class SenderDomain(models.Model):
    """A domain from which the organization may send email once it is verified."""

    organization = models.ForeignKey(Organization, models.CASCADE, related_name="sender_domains")
    domain = models.CharField(max_length=253)
    local_part = models.CharField(max_length=64, default="no-reply")
    name = models.CharField(
        max_length=200, blank=True, help_text=gettext_lazy("The default sender name.")
    )
    is_default = models.BooleanField(default=False)
    verified_at = models.DateTimeField(null=True, blank=True)
    spf = models.CharField(
        gettext_lazy("SPF mechanism"),
        max_length=255,
        blank=True,
        default="",
        db_default="",
        help_text=gettext_lazy(
            "The mechanism that your provider names, like include:spf.example.com."
        ),
    )
    dkim_selector = models.CharField(
        gettext_lazy("DKIM selector"),
        max_length=63,
        blank=True,
        default="",
        db_default="",
        help_text=gettext_lazy("The name before ._domainkey, as your provider shows it."),
    )
    checked_at = models.DateTimeField(null=True, editable=False)
    findings = models.JSONField(default=list, db_default=[], editable=False)
    """What the last check of the DNS records found (`messaging.policy.domain_records`)."""

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["organization", "domain"], name="sender_domain_once"),
            models.UniqueConstraint(
                fields=["organization"],
                condition=models.Q(is_default=True),
                name="one_default_sender_domain",
            ),
        ]

    def __str__(self) -> str:
        return self.shown

    @property
    def shown(self) -> str:
        """Return the domain as people read it (U-labels, RFC 5890)."""
        return addresses.shown_domain(self.domain)

    def clean(self) -> None:
        """Convert the domain to A-labels, and check the local part. Raise ValidationError."""
        errors = {}
        domain = addresses.domain(self.domain)
        if domain is None:
            errors["domain"] = gettext("This is not a domain name. Use one like news.example.com.")
        if not addresses.is_local_part(self.local_part):
            errors["local_part"] = gettext(
                "Use letters, digits and !#$%&'*+-/=?^_`{|}~, with single dots between them."
            )
        if errors:
            raise ValidationError(errors)
        self.domain = domain or self.domain


class ProviderAccount(models.Model):
    """An organization's account with one provider, for one channel.

    `credentials` holds the provider's settings as JSON, encrypted: the provider's own schema
    (`Provider.Settings`) says what is in it and which fields are secret.
    """

    class State(models.TextChoices):
        ACTIVE = "ACTIVE", gettext_lazy("Active")
        PAUSED = "PAUSED", gettext_lazy("Paused: takes nothing")
        DRAINING = "DRAINING", gettext_lazy("Draining: takes nothing new")
        DRAFT = "DRAFT", gettext_lazy("Not active yet")

    organization = models.ForeignKey(Organization, models.CASCADE, related_name="accounts")
    public_id = models.CharField(max_length=36, unique=True, default=new_text_id, editable=False)
    name = models.CharField(
        max_length=64, help_text=gettext_lazy("Shown as `provider` in the API.")
    )
    kind = models.CharField(max_length=32)  # a key of `messaging.providers.REGISTRY`
    channel = models.CharField(max_length=10, choices=CHANNEL_CHOICES)
    priority = models.PositiveSmallIntegerField(
        default=100, help_text=gettext_lazy("Lower goes first.")
    )
    weight = models.PositiveSmallIntegerField(
        default=1,
        validators=[MinValueValidator(1)],
        help_text=gettext_lazy("Share within a priority."),
    )
    match = ArrayField(
        models.CharField(max_length=253),
        default=list,
        blank=True,
        help_text=gettext_lazy(
            "SMS: country prefixes (+41). Email: recipient domains. Empty: all."
        ),
    )
    rate = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(100_000)],
        help_text=gettext_lazy("Sends per second. More than that wait. Empty: as fast as it goes."),
    )
    state = models.CharField(max_length=8, choices=State.choices, default=State.ACTIVE)
    state_reason = models.CharField(
        max_length=500,
        blank=True,
        db_default="",
        help_text=gettext_lazy("Why it is paused or draining."),
    )
    credentials = EncryptedTextField(default="{}", blank=True)
    checked_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text=gettext_lazy("None: not since the settings changed."),
    )
    check_problem = models.CharField(max_length=200, blank=True, db_default="", editable=False)
    """What the last check or test found; empty: it works."""
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["organization", "name"], name="account_name_once")
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Convert what the account matches to the form of addresses, or of platforms.

        Raise ValidationError.
        """
        if self.channel == Channel.PUSH:
            self.match = list(dict.fromkeys(map(_platform_or_app, self.match)))
            return
        read, example = _MATCHES[self.channel == Channel.SMS]
        normalized = [(each, read(each)) for each in self.match]
        if wrong := [each for each, normal in normalized if normal is None]:
            raise ValidationError(
                {
                    "match": gettext("%(wrong)s is not %(example)s.")
                    % {"wrong": wrong[0], "example": example}
                }
            )
        self.match = list(dict.fromkeys(normal for _, normal in normalized if normal))
