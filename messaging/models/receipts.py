"""Feedback as it arrived: provider callbacks, provider ids, parts of inbound SMS, opens, clicks."""

from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from rme.core import ids


class Callback(models.Model):
    """One authentic provider callback: a receipt or an inbound SMS.

    `digest` is a hash of the account and the whole request, so a request that is repeated ten times
    is one row. `due_at` is when the callback is applied next, and null once it was applied: a
    receipt may arrive before the worker has recorded that the message left. Rows are kept for some
    days. For an inbound SMS the row stays for a year without its content, because not all services
    sign the time, and an old request could be replayed. Where the service gives an SMS no id, the
    digest covers the time too, as a later SMS may be an equal request (`callbacks`).
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
    is_inbound_sms = models.BooleanField(db_column="letter", db_default=False)

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by callbacks.apply_due
            models.Index(
                fields=["due_at"], name="callback_due", condition=models.Q(due_at__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


class ProviderReference(models.Model):
    """A provider's own id of a message, for providers whose receipts name nothing else.

    For a provider that has to be polled, `ask_at` is when to poll next; it is null once the final
    status is known.

    The attempt stores this id too, but an index there would cost every attempt of every channel,
    since PostgreSQL then writes new entries into all indexes of the row. A provider may reuse an
    id, so the newest row counts. Rows are kept for some days.
    """

    id = models.UUIDField(primary_key=True)  # the attempt's
    account_id = models.BigIntegerField()
    reference = models.CharField(max_length=255)
    ask_at = models.DateTimeField(null=True)

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by references.find
            models.Index(fields=["account_id", "reference"], name="provider_reference_of"),
            # read by references.take_due: what is due, fair between accounts
            models.Index(
                fields=["account_id", "ask_at"],
                name="provider_reference_ask",
                condition=models.Q(ask_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.reference


class InboundSmsParts(models.Model):
    """The parts of one long inbound SMS, for providers that deliver them one by one.

    `texts` maps the number of a part to its text. A complete row stays, so that a part that arrives
    again is recognized. Rows are kept for a day.
    """

    digest = models.CharField(max_length=64, primary_key=True)  # account, numbers, reference, total
    account_id = models.BigIntegerField()
    texts = models.JSONField(default=dict)
    complete = models.BooleanField(db_column="heard", default=False)
    received_at = models.DateTimeField()

    class Meta:
        db_table = "messaging_partedletter"  # its former name; the release before reads it

    def __str__(self) -> str:
        return self.digest


class Hit(models.Model):
    """An open or a click of an email, stored until it is applied.

    There is one row for each delivery, kind and source (person or machine), however often the email
    is opened: a person's first open counts although a machine opened the email before. `due_at` is
    null once the hit was applied.
    """

    class Kind(models.TextChoices):
        OPEN = "open", _("Open")
        CLICK = "click", _("Click")

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization_id = models.CharField(max_length=64)
    delivery_id = models.UUIDField()
    kind = models.CharField(max_length=8, choices=Kind.choices)
    machine = models.BooleanField()
    at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField(null=True, db_default=Now())

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by tracking.apply_due
            models.Index(
                fields=["due_at"], name="hit_due", condition=models.Q(due_at__isnull=False)
            ),
        ]
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["delivery_id", "kind", "machine"], name="hit_once"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.at}"
