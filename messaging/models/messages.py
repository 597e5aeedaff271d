"""Messages, their deliveries, attempts and events.

These tables are partitioned on their id, which begins with the time: see `partition_periods`. Rows
are written in sets by `rme.core.db.sql`. Foreign keys are plain columns: partitions are dropped
whole, and a message is always written together with its rows.
"""

from typing import Any, ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from messaging.domain.statuses import Status
from messaging.models import delivery_indexes
from rme.core import ids
from rme.core.db.periods import Period


class Message(models.Model):
    """One accepted request: what is the same for all its recipients."""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization_id = models.CharField(max_length=64)
    application_id = models.BigIntegerField(null=True)
    category = models.CharField(max_length=64)
    channels = ArrayField(models.CharField(max_length=10), null=True)
    """The channels to choose from; None: there is one, that of its deliveries."""
    strategy = models.CharField(max_length=16, null=True)
    """None: the usual one."""
    fallback_after = models.IntegerField(null=True)
    template = models.CharField(max_length=200, null=True)
    language = models.CharField(max_length=16, null=True)
    metadata = models.JSONField(null=True)
    test = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by queries.history: an organization's messages, newest first
            models.Index(fields=["organization_id", "id"], name="message_newest"),
        ]

    def __str__(self) -> str:
        return str(self.id)


class MessageContent(models.Model):
    """The content that a caller sent with a message: a table of its own, to be deleted earlier."""

    id = models.UUIDField(primary_key=True)  # the message's
    organization_id = models.CharField(max_length=64)
    body = models.JSONField()
    """A `messaging.domain.contents.ContentBody`."""
    size = models.IntegerField(null=True)
    """Bytes of the body as JSON, so that a claim is limited without reading it; None: not known."""

    def __str__(self) -> str:
        return str(self.id)


class Delivery(models.Model):
    """One channel to one recipient of a message, and its status.

    That of the first recipient has the message's id (see `messaging.store.lookups`).
    `due_at` is when the row is to be processed next. By status, it is: SCHEDULED the time to send,
    ACCEPTED the time from which it is ready, SENDING the end of the lease, UNKNOWN the time to
    decide, SENT the time to fall back. It is null where nothing is to be done. `fence` is the
    fencing token: a worker whose lease has ended cannot write over a later claim.
    """

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization_id = models.CharField(max_length=64)
    message_id = models.UUIDField()
    contact_id = models.CharField(max_length=64)
    position = models.SmallIntegerField(default=0)
    category = models.CharField(max_length=64)
    priority = models.SmallIntegerField(default=1, help_text="0 goes before 1.")
    channels = ArrayField(models.CharField(max_length=10), null=True)
    """The channels to fall back to; None: there is none."""
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
    trace = models.JSONField(null=True)
    """How accept decided, as `messaging.domain.planning.decisions` encodes it."""
    updated_at = models.DateTimeField(db_default=Now())
    accepted_at = models.DateTimeField(null=True)
    """With this, the row stands for its event `accepted` too (`messaging.store.event_view`)."""
    accepted_channel = models.CharField(max_length=10, null=True)
    accepted_provider = models.CharField(max_length=64, null=True)
    """What channel and provider were when it was accepted, once they have changed."""

    class Meta:
        verbose_name_plural = "deliveries"
        indexes: ClassVar[list[Any]] = [
            # read by store.lookups, for all who start from messages; has nothing of a
            # message to one person
            models.Index(
                fields=["message_id"], name="delivery_of_other", condition=delivery_indexes.OTHER
            ),
            # read by store.lookups, for the history with contactId and for frequency caps
            models.Index(
                delivery_indexes.Hash("contact_id"), "message_id", name="delivery_by_contact"
            ),
            # read by claims: what is ready, fair between organizations
            models.Index(
                fields=["channel", "priority", "organization_id", "due_at"],
                name="delivery_ready",
                condition=models.Q(status="ACCEPTED"),
            ),
            # read by due_organizations: is anything due, and which organization has the oldest. The
            # order of nulls (there are none) keeps claims from using it in place of delivery_ready
            models.Index(
                "status",
                "channel",
                "priority",
                models.F("due_at").asc(nulls_first=True),
                name="delivery_waiting",
                condition=models.Q(status__in=["ACCEPTED", "SCHEDULED"], due_at__isnull=False),
            ),
            # read by sweeper.release: what is due, fair between organizations
            models.Index(
                fields=["priority", "organization_id", "due_at"],
                name="delivery_scheduled",
                condition=models.Q(status="SCHEDULED"),
            ),
            # read by the rest of the sweeper: ended leases, unknown outcomes, fallbacks
            models.Index(
                fields=["status", "due_at"],
                name="delivery_due",
                condition=models.Q(due_at__isnull=False)
                & ~models.Q(status__in=["ACCEPTED", "SCHEDULED"]),
            ),
            # read by manual_review; nearly always empty
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
    """One hand-over to an account, written before it leaves; `outcome` is null until it has one."""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization_id = models.CharField(max_length=64)
    message_id = models.UUIDField(null=True)
    """None: the delivery's id is the message's."""
    delivery_id = models.UUIDField()
    fence = models.IntegerField()
    channel = models.CharField(max_length=10)
    provider = models.CharField(max_length=64)
    account_id = models.BigIntegerField(null=True)
    device_id = models.UUIDField(null=True)
    outcome = models.CharField(max_length=16, null=True)
    reason = models.CharField(max_length=200, null=True)
    provider_id = models.CharField(max_length=255, null=True)
    """Encoded: see `messaging.store.encodings`."""
    started_at = models.DateTimeField(db_default=Now())
    latency_ms = models.IntegerField(null=True)
    sent_at = models.DateTimeField(null=True)
    """With this, the row stands for the event `sent` too (`messaging.store.event_view`)."""

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by queries.detail with include=trace, the admin and the sweeper
            models.Index(fields=["delivery_id"], name="attempt_of_delivery"),
            # read by health and account_hour: an organization's latest, whatever others send
            models.Index(fields=["organization_id", "id"], name="attempt_of_organization"),
        ]

    def __str__(self) -> str:
        return str(self.id)


class Event(models.Model):
    """An entry of a delivery's history. Some have no row: see `messaging.store.event_view`."""

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


def partition_periods() -> dict[str, Period]:
    """Return the length of the partitions of each table, by its name."""
    periods = {model._meta.db_table: settings.PARTITION_PERIOD for model in PARTITIONED}
    return periods | {MessageContent._meta.db_table: settings.CONTENT_PARTITION_PERIOD}


class IdempotencyKey(models.Model):
    """A key that was used, the digest of its request, and the answer to repeat."""

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
