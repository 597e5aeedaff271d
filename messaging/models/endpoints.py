"""Outbound webhooks: whom an organization has told of its events, and what each is to be told."""

from typing import Any, ClassVar
from urllib.parse import urlsplit

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from messaging.models.statuses import EventType
from rme.core.db.encrypted_fields import EncryptedTextField
from rme.tenants.models import Organization

EVERYTHING = "message.*"
TYPES = (EVERYTHING, *(f"message.{kind}" for kind in EventType))
"""What an endpoint may ask to be told of."""


class WebhookEndpoint(models.Model):
    """An address that is told of an organization's events.

    `free_at` is when a worker may take the endpoint's queue next: the end of a lease while one has
    it, or of the wait after a failure. `fence` is the number of the claim. `failures` counts those
    in a row.
    """

    organization = models.ForeignKey(Organization, models.CASCADE, related_name="webhook_endpoints")
    url = models.CharField("URL", max_length=500)
    description = models.CharField(max_length=200, blank=True)
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
        # A path may be a secret of the receiver's.
        return self.description or urlsplit(self.url).netloc


class Notice(models.Model):
    """One event that one endpoint is to be told of; its webhook-id is the event's id.

    What is told is read from the event when it is told. `data` is that of a notice that no event
    stands behind (a test). `due_at` is null once it was told or given up. `attempts` are the last
    ones: `{at, status, ms, error, answer}` each. Rows have no foreign keys, as those of messages.
    """

    class Status(models.TextChoices):
        PENDING = "PENDING"
        DELIVERED = "DELIVERED"
        FAILED = "FAILED"

    organization_id = models.CharField(max_length=64)
    endpoint_id = models.BigIntegerField()
    event_id = models.UUIDField()
    type = models.CharField(max_length=40)
    data = models.JSONField(null=True)
    status = models.CharField(max_length=10, db_default=Status.PENDING)
    due_at = models.DateTimeField(null=True, db_default=Now())
    tries = models.SmallIntegerField(db_default=0)
    attempts = models.JSONField(null=True)
    tried_at = models.DateTimeField(null=True)
    noted_at = models.DateTimeField(db_default=Now(), help_text="Or replayed.")

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by notices.claim: what is due, one step an endpoint
            models.Index(
                fields=["endpoint_id", "due_at"],
                name="notice_due",
                condition=models.Q(due_at__isnull=False),
            ),
            # read by the endpoint's page: what was tried last
            models.Index(fields=["endpoint_id", "tried_at"], name="notice_tried"),
            # read by notices.purge
            models.Index(fields=["status", "noted_at"], name="notice_age"),
        ]
        constraints: ClassVar[list[Any]] = [
            # read by replays and by erasure.erase, too
            models.UniqueConstraint(fields=["endpoint_id", "event_id"], name="notice_once")
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.event_id}"
