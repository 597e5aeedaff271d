"""Where organizations are, in a deployment that is one of several cells."""

from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Now


class Placement(models.Model):
    """An organization that is not simply here: it is being moved, or has moved to another cell.

    An organization without a row is here. There is no foreign key: the pointer to the new cell
    stays when the rows of the organization are dropped.
    """

    class Phase(models.TextChoices):
        ARRIVING = "ARRIVING", "Arriving: copied from another cell, which serves it"
        LEAVING = "LEAVING", "Leaving: calls are accepted, nothing is sent"
        PAUSED = "PAUSED", "Paused: nothing is written, for seconds"
        MOVED = "MOVED", "Moved: another cell serves it"

    organization_id = models.CharField(primary_key=True, max_length=64)
    phase = models.CharField(max_length=8, choices=Phase.choices)
    cell = models.CharField(max_length=32)
    """The other cell: where it comes from, or goes to."""
    since = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.CheckConstraint(
                condition=models.Q(phase__in=["ARRIVING", "LEAVING", "PAUSED", "MOVED"]),
                name="placement_phase_known",
            )
        ]

    def __str__(self) -> str:
        return f"{self.organization_id}: {self.phase} {self.cell}"
