"""What providers called us with, as it arrived."""

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
