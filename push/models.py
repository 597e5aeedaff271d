"""Devices that push messages reach."""

import hashlib
from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from rme.core import ids
from rme.tenants.models import Organization


def token_digest(token: str) -> str:
    """Return the digest by which a token is found: tokens are long, and secret."""
    return hashlib.sha256(token.encode()).hexdigest()


class Device(models.Model):
    """A registered device (`MSG_Device__c`): one token of one person."""

    class Platform(models.TextChoices):
        IOS = "IOS", _("iOS")
        ANDROID = "ANDROID", _("Android")
        WEB = "WEB", _("Web")
        PLATFORM = "PLATFORM", _("Platform")

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE)
    contact_id = models.CharField(max_length=64, blank=True)
    user_id = models.CharField(max_length=64, blank=True)
    platform = models.CharField(max_length=10, choices=Platform.choices)
    app = models.CharField(max_length=200, blank=True)
    token = models.TextField(max_length=4096)
    token_digest = models.CharField(max_length=64, editable=False)
    environment = models.CharField(
        max_length=10,
        choices=[("PRODUCTION", _("Production")), ("SANDBOX", _("Sandbox"))],
        default="PRODUCTION",
    )
    name = models.CharField(max_length=200, blank=True)
    locale = models.CharField(max_length=16, blank=True)
    zone = models.CharField(max_length=64, blank=True)
    test = models.BooleanField(default=False, db_default=False, editable=False)
    """Whether a TEST application registered it; it then gets no live messages."""
    active = models.BooleanField(default=True)
    inactive_reason = models.CharField(max_length=64, blank=True, editable=False)
    inactive_since = models.DateTimeField(null=True, blank=True, editable=False)
    history = models.JSONField(
        default=list, db_default=models.Value([], models.JSONField()), editable=False
    )  # what happened to it, newest last; only `devices` and `feedback` write it
    registered_at = models.DateTimeField(db_default=Now(), editable=False)
    last_seen_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        verbose_name = _("device (MSG_Device__c)")
        verbose_name_plural = _("devices (MSG_Device__c)")
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                fields=["organization", "token_digest"], name="one_person_a_token"
            ),
            models.CheckConstraint(
                condition=~models.Q(contact_id="") | ~models.Q(user_id=""),
                name="device_has_an_owner",
            ),
        ]
        indexes: ClassVar[list[Any]] = [
            # read by devices.active_devices at accept and at send
            models.Index(
                fields=["organization", "contact_id"],
                name="device_by_contact",
                condition=models.Q(active=True),
            ),
            # read by devices.find: an organization's devices, or a contact's, newest first
            models.Index(fields=["organization", "-id"], name="device_of_organization"),
            models.Index(fields=["organization", "contact_id", "-id"], name="device_of_contact"),
            # read by feedback.retire_unseen: Android devices that were not seen for long
            models.Index(
                fields=["last_seen_at"],
                name="device_unseen",
                condition=models.Q(active=True, platform="ANDROID"),
            ),
            # read by devices.with_browsers: which organizations push to browsers
            models.Index(
                fields=["organization"],
                name="device_of_browser",
                condition=models.Q(active=True, platform="WEB"),
            ),
        ]

    def __str__(self) -> str:
        return self.name or f"{self.platform} {str(self.id)[-8:]}"


class Feedback(models.Model):
    """A push service's report that a device's token is dead, until a task has processed it.

    It is written in the transaction of the outcome. `at` is when the token was dead: the service's
    own time, else that of the attempt. A device that registered later is not affected.
    """

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization_id = models.CharField(max_length=64)
    device_id = models.UUIDField()
    reason = models.CharField(max_length=64)
    test = models.BooleanField(default=False, db_default=False)
    """Whether it is of a TEST message, which doesn't concern live devices."""
    at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "feedback"

    def __str__(self) -> str:
        return self.reason
