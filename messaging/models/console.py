"""What people leave in the console: actions on chosen rows with their progress, and filters."""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from rme.core import ids
from rme.tenants.models import Organization, User


class BulkAction(models.Model):
    """An action on the rows that a person chose, carried out by a worker in slices.

    `targets` was fixed when the person confirmed the number; the first `done + failed` are through,
    in their order. So a worker that takes over continues where the one before ended.
    """

    class Kind(models.TextChoices):
        CANCEL = "CANCEL", _("Cancel scheduled sends")
        RESEND = "RESEND", _("Send again")
        LIFT = "LIFT", _("Lift suppressions")
        SEND_AGAIN = "SEND_AGAIN", _("Manual review: send again")
        GIVE_UP = "GIVE_UP", _("Manual review: give up")

    class State(models.TextChoices):
        RUNNING = "RUNNING", _("Running")
        DONE = "DONE", _("Done")
        STOPPED = "STOPPED", _("Stopped")

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE)
    kind = models.CharField(max_length=16, choices=Kind.choices)
    state = models.CharField(max_length=8, choices=State.choices, default=State.RUNNING)
    scope = models.CharField(max_length=1000, help_text="What was chosen, in words.")
    reason = models.CharField(max_length=500)
    contact_id = models.CharField(max_length=64, default="", db_default="")
    """The contact whom scope and reason name, if it is one alone: an erasure removes both."""
    targets = ArrayField(models.UUIDField())
    total = models.PositiveIntegerField()
    done = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    problems = models.JSONField(default=list)
    """Shape: `[[id, why], …]`, the first ones."""
    started_by = models.CharField(max_length=200)
    user_id = models.BigIntegerField()
    actor = models.JSONField(default=dict, db_default={})
    """Who ordered it, for the audit of what a worker does. Shape: the fields of `audit.Actor`."""
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    turn_at = models.DateTimeField(db_default=Now(), editable=False)
    """When a slice was last begun: the action with the earliest time is next."""
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by console.actions.bulk_actions.work
            models.Index(
                fields=["turn_at"],
                condition=models.Q(state="RUNNING"),
                name="bulk_action_running",
            ),
            # read by the console's list of an organization's actions
            models.Index(fields=["organization", "-id"], name="bulk_action_history"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.scope}"

    @property
    def through(self) -> int:
        """Return how many targets were processed, with or without success."""
        return self.done + self.failed

    @property
    def percent(self) -> int:
        """Return the share of the targets that are through."""
        return 100 * self.through // self.total if self.total else 100


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


class ListColumns(models.Model):
    """The columns that a person has chosen for a list of an organization, by their names."""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE)
    user = models.ForeignKey(User, models.CASCADE)
    page = models.CharField(max_length=30)
    names = ArrayField(models.CharField(max_length=30), default=list)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            # its index is read by the lists, from the organization
            models.UniqueConstraint(
                fields=["organization", "user", "page"], name="list_columns_once"
            )
        ]
