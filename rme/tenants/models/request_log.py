"""The log of REST requests."""

from typing import Any, ClassVar

from django.db import models

from rme.core import ids


class RequestLogEntry(models.Model):
    """A REST request of an organization: metadata alone. Its id begins with the time of its answer.

    The table is partitioned by day on it. There are no foreign keys: entries are written by sets,
    and go with their partition.
    """

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization_id = models.CharField(max_length=64)
    application_id = models.BigIntegerField()
    request_id = models.UUIDField(help_text="The caller may choose it, so it may occur twice.")
    method = models.CharField(max_length=10)
    route = models.CharField(max_length=100)
    status = models.SmallIntegerField()
    code = models.CharField(max_length=40)
    microseconds = models.BigIntegerField()
    message_id = models.UUIDField(null=True)

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by request_log.find: pages of an organization
            models.Index(fields=["organization_id", "id"], name="request_of_organization"),
            # read by request_log.find: one request
            models.Index(fields=["request_id"], name="request_by_id"),
        ]

    def __str__(self) -> str:
        return f"{self.method} {self.route}"
