"""Filters of the console's list of messages that people keep under a name."""

from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Now

from rme.core import ids
from rme.tenants.models import Organization, User


class SavedFilter(models.Model):
    """A filter of the list of messages, of one person or shared with the organization.

    `query` is the query string of the filter's fields. It names no person, so an erasure has
    nothing to remove here, and a shared filter shows no address.
    """

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE)
    user = models.ForeignKey(User, models.CASCADE)
    name = models.CharField(max_length=80)
    query = models.CharField(max_length=2000)
    is_shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            # its index is read by the list of messages, from the organization
            models.UniqueConstraint(
                fields=["organization", "user", "name"], name="saved_filter_once"
            )
        ]

    def __str__(self) -> str:
        return self.name
