"""Statistics: what happened in each minute and hour, counted by a job (`messaging.statistics`)."""

from enum import StrEnum
from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models


class CountedOutcome(StrEnum):
    """What is counted: events of deliveries, and the outcomes of attempts."""

    ACCEPTED = "accepted"
    SENT = "sent"
    DELIVERED = "delivered"
    FAILED = "failed"
    BLOCKED = "blocked"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    ATTEMPT_ACCEPTED = "attempt_accepted"
    ATTEMPT_RETRYABLE = "attempt_retryable"
    ATTEMPT_REJECTED = "attempt_rejected"
    ATTEMPT_GONE = "attempt_gone"
    ATTEMPT_MISCONFIGURED = "attempt_misconfigured"
    ATTEMPT_UNKNOWN = "attempt_unknown"


class _Count(models.Model):
    """How often one thing happened in a span of time. It contains nothing about any person."""

    pk = models.CompositePrimaryKey(
        "organization_id", "at", "test", "channel", "account_id", "outcome", "reason"
    )
    organization_id = models.CharField(max_length=64)
    at = models.DateTimeField(help_text="When the span begins.")
    test = models.BooleanField()
    channel = models.CharField(max_length=10)
    account_id = models.BigIntegerField(help_text="0: none, or the simulator.")
    outcome = models.CharField(max_length=24)
    reason = models.CharField(max_length=64, help_text="Why it was not sent; otherwise empty.")
    count = models.IntegerField()
    latencies = ArrayField(models.IntegerField(), null=True)
    """Of `sent`: how many took how long, in the buckets of `messaging.store.reports.latencies`."""

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.at} {self.channel} {self.outcome}: {self.count}"


class MinuteCount(_Count):
    """The count of a minute; kept for some days."""

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by the counting job and by its purge
            models.Index(fields=["at"], name="minute_count_at"),
        ]


class HourCount(_Count):
    """The count of an hour, summed from its minutes."""

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by the counting job and by its purge
            models.Index(fields=["at"], name="hour_count_at"),
        ]


class CountedUntil(models.Model):
    """How far the job has counted: one row, which the process that counts has locked.

    Each minute is counted twice: when it has passed, and again once late commits are in.
    """

    ONLY = 1
    id = models.SmallIntegerField(primary_key=True, default=ONLY)
    first_until = models.DateTimeField()
    final_until = models.DateTimeField(help_text="Hours before it are summed.")

    def __str__(self) -> str:
        return f"{self.first_until}"
