"""The consent ledger, the suppression list and its imports."""

from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Now

from messaging.models.policy import CHANNEL_CHOICES
from rme.core import ids
from rme.core.channels import ALL
from rme.tenants.imports import FileImport, FilePart
from rme.tenants.models import Organization

ANY_CHANNEL_CHOICES = [*CHANNEL_CHOICES, (ALL, "All channels")]


class ConsentEntry(models.Model):
    """One entry of the consent ledger. Entries are never deleted, and only erasure updates them.

    `previous` is the digest of the organization's entry before, and `digest` covers this entry and
    `previous`, so that a change to any entry is detected (`consent.ledger`).
    """

    class Status(models.TextChoices):
        OPTED_IN = "OPTED_IN", "Opted in"
        OPTED_OUT = "OPTED_OUT", "Opted out"

    class Source(models.TextChoices):
        API = "API"
        ADMIN = "ADMIN"
        PREFERENCE_PAGE = "PREFERENCE_PAGE"
        ONE_CLICK = "ONE_CLICK"
        SMS_KEYWORD = "SMS_KEYWORD"
        IMPORT = "IMPORT"
        DOUBLE_OPT_IN = "DOUBLE_OPT_IN"

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE)
    contact_id = models.CharField(max_length=64)
    channel = models.CharField(max_length=10, choices=ANY_CHANNEL_CHOICES)
    category = models.CharField(max_length=64, help_text="A category's name, or ALL.")
    status = models.CharField(max_length=10, choices=Status.choices)
    source = models.CharField(max_length=16, choices=Source.choices)
    evidence = models.JSONField(default=dict, blank=True)
    occurred_at = models.DateTimeField()
    recorded_at = models.DateTimeField(db_default=Now(), editable=False)
    recorded_by = models.CharField(max_length=200, blank=True, editable=False)
    previous = models.CharField(max_length=64, editable=False)
    digest = models.CharField(max_length=64, editable=False)

    class Meta:
        verbose_name_plural = "consent entries"
        indexes: ClassVar[list[Any]] = [
            # read by consent.gates.current_consent when accepting and before sending
            models.Index(
                fields=["organization", "contact_id", "channel", "category", "-occurred_at"],
                name="consent_of_contact",
            ),
            # read by consent.ledger.record, which continues the chain
            models.Index(fields=["organization", "-id"], name="consent_chain"),
        ]

    def __str__(self) -> str:
        return f"{self.contact_id} {self.status} {self.channel}/{self.category}"


class Suppression(models.Model):
    """An address or a contact that must not be written to on a channel."""

    class Reason(models.TextChoices):
        HARD_BOUNCE = "HARD_BOUNCE", "Hard bounce"
        COMPLAINT = "COMPLAINT", "Complaint"
        STOP = "STOP", "STOP by SMS"
        UNSUBSCRIBE = "UNSUBSCRIBE", "Unsubscribed"
        INVALID_ADDRESS = "INVALID_ADDRESS", "Invalid address"
        MANUAL = "MANUAL", "Manual"

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE)
    channel = models.CharField(max_length=10, choices=ANY_CHANNEL_CHOICES)
    address = models.CharField(max_length=320, blank=True)
    contact_id = models.CharField(max_length=64, blank=True)
    reason = models.CharField(max_length=16, choices=Reason.choices)
    note = models.CharField(max_length=500, blank=True)
    source = models.CharField(max_length=16, default="ADMIN", editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            # both are read by consent.gates.active_suppressions when accepting and before sending
            models.UniqueConstraint(
                fields=["organization", "address", "channel"],
                condition=~models.Q(address=""),
                name="suppressed_address_once",
            ),
            models.UniqueConstraint(
                fields=["organization", "contact_id", "channel"],
                condition=~models.Q(contact_id=""),
                name="suppressed_contact_once",
            ),
            models.CheckConstraint(
                condition=(models.Q(address="") & ~models.Q(contact_id=""))
                | (~models.Q(address="") & models.Q(contact_id="")),
                name="suppression_names_one",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.address or self.contact_id} on {self.channel}: {self.reason}"


class SuppressionImport(FileImport):
    """One imported file, in parts, so that any worker can continue after another.

    `unchanged` rows were already listed with a reason as strong.
    """

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by rme.tenants.imports.import_next_part
            models.Index(
                fields=["turn_at"],
                condition=models.Q(state="RUNNING"),
                name="suppression_import_running",
            ),
        ]


class SuppressionImportPart(FilePart):
    """Some lines of an imported file."""

    run = models.ForeignKey(SuppressionImport, models.CASCADE, related_name="parts", db_index=False)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            # read by rme.tenants.imports.import_part_of, in this order
            models.UniqueConstraint(fields=["run", "number"], name="suppression_import_part_once")
        ]
