"""What came back of messages, as it arrived: calls of providers, opens, clicks, soft bounces."""

from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Now

from rme.core import ids


class Callback(models.Model):
    """One call of a provider whose signature was right: a receipt, or what a person wrote to us.

    `digest` is of the account and all that was sent, so that a call that is made ten times is one
    row. `due_at` is when it is to be applied, and null once it was: a receipt may come before the
    worker has written down that the message left. Rows are kept for some days to look at; of what a
    person wrote the digest stays for a year, empty, since not all services sign the time.
    """

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization_id = models.CharField(max_length=64)
    account_id = models.BigIntegerField()
    digest = models.CharField(max_length=64, unique=True)
    method = models.CharField(max_length=8)
    query = models.TextField(blank=True)
    headers = models.JSONField(default=dict)
    body = models.BinaryField(default=bytes)
    received_at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField(null=True, db_default=Now())
    tries = models.SmallIntegerField(default=0)
    letter = models.BooleanField(db_default=False)

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by callbacks.work: what is to be applied
            models.Index(
                fields=["due_at"], name="callback_due", condition=models.Q(due_at__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


class ProviderReference(models.Model):
    """A provider's own id of a message, where it is needed to learn what became of that.

    Either reports name nothing else, or the provider has to be asked: then `ask_at` is when next,
    and null once all is known.

    Apart from the attempt, which has it too: an index there would be paid for by every attempt of
    every channel, as PostgreSQL then writes a row's entries anew into all indexes. A provider may
    give an id a second time, so the newest counts. Rows are kept for some days.
    """

    id = models.UUIDField(primary_key=True)  # the attempt's
    account_id = models.BigIntegerField()
    reference = models.CharField(max_length=255)
    ask_at = models.DateTimeField(null=True)

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by references.find
            models.Index(fields=["account_id", "reference"], name="provider_reference_of"),
            # read by polling.work: whom to ask, fair between accounts
            models.Index(
                fields=["account_id", "ask_at"],
                name="provider_reference_ask",
                condition=models.Q(ask_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.reference


class PartedLetter(models.Model):
    """What of a person's long SMS has come so far, for providers that deliver its parts.

    `texts` are by the number of the part. Once it was heard the row stays for what of it still
    comes twice. Rows are kept for a day.
    """

    digest = models.CharField(max_length=64, primary_key=True)  # of account, people and reference
    account_id = models.BigIntegerField()
    texts = models.JSONField(default=dict)
    heard = models.BooleanField(default=False)
    received_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.digest


class Hit(models.Model):
    """An open or a click of an email, kept until it is applied.

    One row for each delivery, kind and maker, however often it is opened: a person's first after a
    machine's is news. `due_at` is null once it was applied.
    """

    class Kind(models.TextChoices):
        OPEN = "open", "Open"
        CLICK = "click", "Click"

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization_id = models.CharField(max_length=64)
    delivery_id = models.UUIDField()
    kind = models.CharField(max_length=8, choices=Kind.choices)
    machine = models.BooleanField()
    at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField(null=True, db_default=Now())

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by tracking.work: what is to be applied
            models.Index(
                fields=["due_at"], name="hit_due", condition=models.Q(due_at__isnull=False)
            ),
        ]
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["delivery_id", "kind", "machine"], name="hit_once"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.at}"
