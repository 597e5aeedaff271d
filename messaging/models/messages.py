"""What was accepted and what became of it. The tables here are partitioned by month on their id.

Rows are written by `rme.core.db.sql` in sets; foreign keys are plain columns, because partitions
are dropped whole and a message is always written together with what belongs to it.
"""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from messaging.models.statuses import Status
from rme.core import ids


class Message(models.Model):
    """One accepted request: what is the same for all its recipients."""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization_id = models.CharField(max_length=64)
    application_id = models.BigIntegerField(null=True)
    category = models.CharField(max_length=64)
    channels = ArrayField(models.CharField(max_length=10))
    strategy = models.CharField(max_length=16)
    fallback_after = models.IntegerField(null=True)
    template = models.CharField(max_length=200, null=True)
    language = models.CharField(max_length=16, null=True)
    metadata = models.JSONField(null=True)
    test = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by queries.history: an organization's messages, newest first
            models.Index(fields=["organization_id", "-id"], name="message_history"),
        ]

    def __str__(self) -> str:
        return str(self.id)


class MessageContent(models.Model):
    """What the caller gave to be sent. Apart from the message, so that it can be dropped earlier.

    `body` has the keys `content`, `push`, `sender`, `context` and `variables` (of all recipients),
    and `recipients`: variables by delivery id. Keys without a value are missing.
    """

    id = models.UUIDField(primary_key=True)  # the message's
    organization_id = models.CharField(max_length=64)
    body = models.JSONField()
    size = models.IntegerField(null=True)
    """Bytes of the body as JSON, so that a claim is bounded without reading it; None: not known."""

    def __str__(self) -> str:
        return str(self.id)


class Delivery(models.Model):
    """One recipient of a message, and where the sending stands.

    `due_at` is when somebody must look at the row next, and what for depends on the status:
    SCHEDULED its time to go, ACCEPTED ready from then on, SENDING the end of the lease, UNKNOWN
    the time to decide. It is null where nothing is to be done. `fence` is the number of the claim:
    a worker that was thought dead cannot write over its successor.
    """

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization_id = models.CharField(max_length=64)
    message_id = models.UUIDField()
    contact_id = models.CharField(max_length=64)
    position = models.SmallIntegerField(default=0)
    category = models.CharField(max_length=64)
    priority = models.SmallIntegerField(default=1, help_text="0 goes before 1.")
    channels = ArrayField(models.CharField(max_length=10))
    channel = models.CharField(max_length=10)
    address = models.CharField(max_length=320, null=True)
    template_version_id = models.BigIntegerField(null=True)
    provider = models.CharField(max_length=64, null=True)
    account_id = models.BigIntegerField(null=True)
    status = models.CharField(max_length=10)
    reason = models.CharField(max_length=64, null=True)
    detail = models.CharField(max_length=500, null=True)
    waiting = models.CharField(max_length=16, null=True)
    scheduled_for = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField()
    fence = models.IntegerField(default=0)
    tries = models.IntegerField(default=0)
    test = models.BooleanField(default=False)
    trace = models.JSONField(
        null=True
    )  # how it was decided: messaging.reports.trace says what is in it
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "deliveries"
        indexes: ClassVar[list[Any]] = [
            # read by queries.detail and history, which start from messages
            models.Index(fields=["message_id"], name="delivery_of_message"),
            # read by queries.history with contactId, and by frequency caps
            models.Index(
                fields=["organization_id", "contact_id", "-message_id"],
                name="delivery_of_contact",
            ),
            # read by claiming: what is ready, fair between organizations
            models.Index(
                fields=["channel", "priority", "organization_id", "due_at"],
                name="delivery_ready",
                condition=models.Q(status="ACCEPTED"),
            ),
            # read by fairness: is anything due at all, and of whom is the oldest. Its order of
            # nulls, of which there are none, keeps claims from reading it for delivery_ready
            models.Index(
                "status",
                "channel",
                "priority",
                models.F("due_at").asc(nulls_first=True),
                name="delivery_waiting",
                condition=models.Q(status__in=["ACCEPTED", "SCHEDULED"], due_at__isnull=False),
            ),
            # read by schedule.release: what is due, fair between organizations
            models.Index(
                fields=["priority", "organization_id", "due_at"],
                name="delivery_scheduled",
                condition=models.Q(status="SCHEDULED"),
            ),
            # read by the rest of schedule: ended leases, unknown outcomes, fallbacks
            models.Index(
                fields=["status", "due_at"],
                name="delivery_due",
                condition=models.Q(due_at__isnull=False)
                & ~models.Q(status__in=["ACCEPTED", "SCHEDULED"]),
            ),
            # read by held: what waits for a person's decision; nearly always empty
            models.Index(
                fields=["organization_id", "id"],
                name="delivery_held",
                condition=models.Q(status="UNKNOWN", due_at__isnull=True),
            ),
        ]
        constraints: ClassVar[list[Any]] = [
            models.CheckConstraint(
                condition=models.Q(status__in=[status.value for status in Status]),
                name="delivery_status_known",
            )
        ]

    def __str__(self) -> str:
        return str(self.id)


class Attempt(models.Model):
    """One hand-over to a provider, written before it leaves; `outcome` is null until then."""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization_id = models.CharField(max_length=64)
    message_id = models.UUIDField()
    delivery_id = models.UUIDField()
    fence = models.IntegerField()
    channel = models.CharField(max_length=10)
    provider = models.CharField(max_length=64)
    account_id = models.BigIntegerField(null=True)
    device_id = models.UUIDField(null=True)
    outcome = models.CharField(max_length=16, null=True)
    reason = models.CharField(max_length=200, null=True)
    provider_id = models.CharField(max_length=255, null=True)
    started_at = models.DateTimeField(db_default=Now())
    latency_ms = models.IntegerField(null=True)

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by queries.detail with include=trace, the admin and schedule.sweep
            models.Index(fields=["delivery_id"], name="attempt_of_delivery"),
            # read by health and account_hour: an organization's latest, whatever others send
            models.Index(fields=["organization_id", "id"], name="attempt_of_organization"),
        ]

    def __str__(self) -> str:
        return str(self.id)


class Event(models.Model):
    """Something that happened to one delivery."""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization_id = models.CharField(max_length=64)
    message_id = models.UUIDField()
    delivery_id = models.UUIDField()
    type = models.CharField(max_length=16)
    at = models.DateTimeField(db_default=Now())
    channel = models.CharField(max_length=10, null=True)
    provider = models.CharField(max_length=64, null=True)
    detail = models.JSONField(null=True)

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by queries.detail
            models.Index(fields=["message_id"], name="event_of_message"),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.at}"


PARTITIONED = (Message, MessageContent, Delivery, Attempt, Event)


class IdempotencyKey(models.Model):
    """A key that was used, the digest of its request, and the answer to give again."""

    id = models.BigAutoField(primary_key=True)
    organization_id = models.CharField(max_length=64)
    application_id = models.BigIntegerField(help_text="0: the programmatic send.")
    key = models.CharField(max_length=255)
    digest = models.CharField(max_length=64)
    status = models.SmallIntegerField()
    body = models.TextField()
    expires_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                fields=["organization_id", "application_id", "key"],
                name="idempotency_key_once",
            )
        ]
        indexes: ClassVar[list[Any]] = [
            # read by the sweep that deletes what has expired
            models.Index(fields=["expires_at"], name="idempotency_expiry"),
        ]

    def __str__(self) -> str:
        return self.key
