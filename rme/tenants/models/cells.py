"""Where organizations are, in a deployment that is one of several cells, and how they move."""

from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _


class Placement(models.Model):
    """An organization that is not simply here: it is being moved, or has moved to another cell.

    An organization without a row is here. There is no foreign key: the pointer to the new cell
    stays when the rows of the organization are dropped.
    """

    class Phase(models.TextChoices):
        ARRIVING = "ARRIVING", _("Arriving: copied from another cell, which serves it")
        LEAVING = "LEAVING", _("Leaving: calls are accepted, nothing is sent")
        PAUSED = "PAUSED", _("Paused: nothing is written, for seconds")
        MOVED = "MOVED", _("Moved: another cell serves it")

    organization_id = models.CharField(primary_key=True, max_length=64)
    phase = models.CharField(max_length=8, choices=Phase.choices)
    cell = models.CharField(max_length=32)
    """The other cell: where it comes from, or goes to."""
    since = models.DateTimeField(db_default=Now())
    pause = models.UUIDField(null=True)
    """Where an organization comes to, while it is PAUSED there: the pause in the other cell's
    journal that decides whether it is served here."""

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.CheckConstraint(
                condition=models.Q(phase__in=["ARRIVING", "LEAVING", "PAUSED", "MOVED"]),
                name="placement_phase_known",
            )
        ]

    def __str__(self) -> str:
        return f"{self.organization_id}: {self.phase} {self.cell}"


class Cell(models.Model):
    """This cell: the one row says which database this is, and what opens its secrets.

    `manage.py prepare_cell` writes it. A move compares both cells' rows before it copies.
    """

    ONLY = 1

    id = models.SmallIntegerField(primary_key=True, default=ONLY)
    name = models.CharField(max_length=32)
    number = models.SmallIntegerField()
    """No other cell has it: the integer keys of the cell begin with it."""
    keys = models.JSONField(default=dict)
    """Fingerprints of the secrets that an organization's rows need, by setting."""

    def __str__(self) -> str:
        return self.name


class Move(models.Model):
    """The journal of a move, in the cell that the organization leaves: a killed one goes on by it.

    It stays until the organization's rows have been dropped.
    """

    class MoveStep(models.TextChoices):
        COPYING = "COPYING", _("Copying, while all goes on")
        PAUSING = "PAUSING", _("Pausing: from here to the switch nothing is sent")
        SWITCHED = "SWITCHED", _("Switched: only the target's rows count")
        DONE = "DONE", _("Done: the rows here may be dropped")

    organization_id = models.CharField(primary_key=True, max_length=64)
    cell = models.CharField(max_length=32)
    step = models.CharField(max_length=8, choices=MoveStep.choices)
    since = models.BigIntegerField(null=True)
    """The transaction id from which on changes are not copied yet."""
    copied = models.JSONField(default=list)
    """The partitions that were copied."""
    pause = models.UUIDField(null=True)
    """The last pause. One that was switched or given up stays so, and the next has another id."""
    users = models.JSONField(default=dict)
    """The ids of people in the target, by their ids here: other ones that they had there before the
    move, and the same for those whom the move has copied."""
    began_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return gettext("%(organization_id)s to %(cell)s: %(step)s") % {
            "organization_id": self.organization_id,
            "cell": self.cell,
            "step": self.step,
        }
