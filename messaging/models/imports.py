"""Imports of suppressions: a file in parts, so that any worker can go on where another stopped."""

from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Now

from rme.core import ids
from rme.tenants.models import Organization


class SuppressionImport(models.Model):
    """One file that is imported, and how far it has come. All counts are of rows."""

    class State(models.TextChoices):
        RUNNING = "RUNNING", "Running"
        DONE = "DONE", "Done"
        CANCELLED = "CANCELLED", "Cancelled"

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE)
    name = models.CharField(max_length=255)
    columns = models.JSONField(default=list)
    delimiter = models.CharField(max_length=1, default=",")
    state = models.CharField(max_length=10, choices=State.choices, default=State.RUNNING)
    rows = models.PositiveIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    added = models.PositiveIntegerField(default=0)
    replaced = models.PositiveIntegerField(default=0)
    rejected = models.PositiveIntegerField(default=0)
    started_by = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    turn_at = models.DateTimeField(db_default=Now(), editable=False)
    """When it was last its turn: whoever waits longest comes next."""
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by suppression_import.work
            models.Index(
                fields=["turn_at"],
                condition=models.Q(state="RUNNING"),
                name="suppression_import_running",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def unchanged(self) -> int:
        """Rows whose entry was on the list already, and as strong."""
        return self.done - self.added - self.replaced - self.rejected


class SuppressionImportPart(models.Model):
    """Some lines of a file. What was imported keeps its bad rows alone."""

    run = models.ForeignKey(SuppressionImport, models.CASCADE, related_name="parts", db_index=False)
    number = models.PositiveIntegerField()
    first_line = models.PositiveIntegerField()
    content = models.BinaryField(null=True)
    problems = models.JSONField(default=list)
    """Shape: `[[line, field, why], …]`."""

    class Meta:
        constraints: ClassVar[list[Any]] = [
            # read by suppression_import.step, in this order
            models.UniqueConstraint(fields=["run", "number"], name="suppression_import_part_once")
        ]

    def __str__(self) -> str:
        return f"{self.run_id} part {self.number}"
