"""Verdicts on provider callbacks, and changes of accounts' circuits: stored for some days."""

from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from rme.core import ids


class CallbackLogEntry(models.Model):
    """The verdict on a provider callback. It has nothing of the callback's content.

    `count` is more than one for refused callbacks: a process writes one entry a second for them.
    """

    class Verdict(models.TextChoices):
        APPLIED = "APPLIED", _("Applied")
        DUPLICATE = "DUPLICATE", _("Duplicate")
        SIGNATURE = "SIGNATURE", _("Invalid signature")
        UNKNOWN_ID = "UNKNOWN_ID", _("Unknown message")
        UNKNOWN_CODE = "UNKNOWN_CODE", _("Unknown code")
        UNREADABLE = "UNREADABLE", _("Unreadable")
        NO_NEWS = "NO_NEWS", _("Nothing new")

    pk = models.CompositePrimaryKey("organization_id", "id")  # read by callback_log, also its purge
    organization_id = models.CharField(max_length=64)
    id = models.UUIDField(default=ids.new_id)
    account_id = models.BigIntegerField()
    verdict = models.CharField(max_length=12, choices=Verdict.choices)
    detail = models.CharField(max_length=32, help_text="The unknown code.")
    method = models.CharField(max_length=8)
    size = models.IntegerField(help_text="Bytes of the body.")
    count = models.IntegerField()
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.at} {self.verdict}"


class CircuitChange(models.Model):
    """A change of the state of an account's circuit breaker, written when it happens."""

    class Why(models.TextChoices):
        REFUSED = "REFUSED", _("its provider refused the account")
        FAILING = "FAILING", _("too many of its sends failed")
        PROBE_FAILED = "PROBE_FAILED", _("a probe failed")
        ANSWERED = "ANSWERED", _("its probes were answered")

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    account_id = models.BigIntegerField()
    is_open = models.BooleanField()
    why = models.CharField(max_length=12, choices=Why.choices)
    at = models.DateTimeField()

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by circuit_history: the latest of some accounts
            models.Index(fields=["account_id", "id"], name="circuit_change_of"),
        ]

    def __str__(self) -> str:
        return f"{self.at} {self.why}"
