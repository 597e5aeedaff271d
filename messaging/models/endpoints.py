"""Outbound webhooks: an organization's endpoints, and what is delivered to each."""

from enum import StrEnum
from typing import Any, ClassVar
from urllib.parse import urlsplit

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from messaging.domain.statuses import EventType
from rme.core.db.encrypted_fields import EncryptedTextField
from rme.tenants.models import Organization

ALL_EVENTS = "message.*"
"""All events of messages, also types that are added later."""


class ChangeType(StrEnum):
    """The event types of changes that concern no message."""

    CONSENT_CHANGED = "consent.changed"
    SUPPRESSION_CREATED = "suppression.created"
    SUPPRESSION_CHANGED = "suppression.changed"
    SUPPRESSION_LIFTED = "suppression.lifted"
    DEVICE_REGISTERED = "device.registered"
    DEVICE_DEACTIVATED = "device.deactivated"


TYPES = (ALL_EVENTS, *(f"message.{kind}" for kind in EventType), *ChangeType)
"""The event types that an endpoint may subscribe to."""


class WebhookEndpoint(models.Model):
    """A URL to which an organization's events are delivered.

    `free_at` is when a worker may claim the endpoint's queue next: the end of the lease while a
    worker has it, or the end of the backoff after a failure. `fence` is the fencing token of the
    claim. `failures` counts consecutive failures.
    """

    organization = models.ForeignKey(Organization, models.CASCADE, related_name="webhook_endpoints")
    url = models.CharField("URL", max_length=500)
    description = models.CharField(max_length=200, blank=True)
    test = models.BooleanField(default=False, db_default=False, editable=False)
    """Whether it belongs to TEST applications, and only gets events of TEST data."""
    types = ArrayField(models.CharField(max_length=40))
    enabled = models.BooleanField(default=True)
    disabled_reason = models.CharField(max_length=200, blank=True, db_default="")
    secret = EncryptedTextField()
    former_secret = EncryptedTextField(blank=True, db_default="")
    former_until = models.DateTimeField(null=True)
    free_at = models.DateTimeField(db_default=Now())
    fence = models.IntegerField(db_default=0)
    failures = models.IntegerField(db_default=0)
    failing_since = models.DateTimeField(null=True)
    last_success_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        # The URL's path may be a secret of the receiver.
        return self.description or urlsplit(self.url).netloc


class WebhookDelivery(models.Model):
    """One event to be delivered to one endpoint; its `webhook-id` is the event's id.

    The payload is read from the event when the request is made. `data` is the payload of a delivery
    without an event of a message (a change, or a test). `due_at` is null once it was delivered or
    given up. `attempts` are the latest ones: `{at, status, ms, error, answer}` each. Rows have no
    foreign keys, as those of messages have none.
    """

    class Status(models.TextChoices):
        PENDING = "PENDING", _("Pending")
        DELIVERED = "DELIVERED", _("Delivered")
        FAILED = "FAILED", _("Failed")

    organization_id = models.CharField(max_length=64)
    endpoint_id = models.BigIntegerField()
    event_id = models.UUIDField()
    type = models.CharField(max_length=40)
    data = models.JSONField(null=True)
    status = models.CharField(max_length=10, db_default=Status.PENDING)
    due_at = models.DateTimeField(null=True, db_default=Now())
    tries = models.SmallIntegerField(db_default=0)
    attempts = models.JSONField(null=True)
    queued_at = models.DateTimeField(
        db_column="noted_at", db_default=Now(), help_text="When it was queued or replayed."
    )

    class Meta:
        db_table = "messaging_notice"  # its former name; the release before reads it
        indexes: ClassVar[list[Any]] = [
            # read by outbox.claim: what is due, one index step an endpoint
            models.Index(
                fields=["endpoint_id", "due_at"],
                name="notice_due",
                condition=models.Q(due_at__isnull=False),
            ),
            # read by delivery_log.purge
            models.Index(fields=["status", "queued_at"], name="notice_age"),
            # read by erasure.erase: the changes that concern a contact; messages have no entry
            models.Index(
                KeyTextTransform("contactId", "data"),
                name="notice_contact",
                condition=models.Q(data__isnull=False),
            ),
        ]
        constraints: ClassVar[list[Any]] = [
            # read by replays and by erasure.erase, too
            models.UniqueConstraint(fields=["endpoint_id", "event_id"], name="notice_once")
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.event_id}"
