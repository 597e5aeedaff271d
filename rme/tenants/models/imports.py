"""Bases of the tables of imports: a file in parts, which waits for its columns and is tried."""

from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from rme.core import ids
from rme.core.addresses import Digits
from rme.tenants.models.access import Organization

_DELIMITER_NAMES = {",": _("commas"), ";": _("semicolons"), "\t": _("tabs")}


class FilePart(models.Model):
    """Some lines of a file. After its import only its rejected rows are kept."""

    number = models.PositiveIntegerField()
    first_line = models.PositiveIntegerField()
    content = models.BinaryField(null=True)
    problems = models.JSONField(default=list)
    """Shape: `[[line, field, why], …]`; a dry run adds the refused cell."""
    checked = models.BooleanField(default=False, db_default=False)
    """A dry run has read it."""

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return gettext("part %(number)s") % {"number": self.number}


class FileImport(models.Model):
    """One file to import and its progress. All counts are rows.

    It may wait for its columns, and be tried by a dry run before it is imported.
    """

    line_limit: ClassVar[int]
    """Bytes of a line, and of a row of several lines."""

    class State(models.TextChoices):
        PREPARED = "PREPARED", _("Waiting for its columns")
        RUNNING = "RUNNING", _("Running")
        DONE = "DONE", _("Done")
        CANCELLED = "CANCELLED", _("Cancelled")

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE)
    name = models.CharField(max_length=255)
    columns = models.JSONField(default=list)
    """What each column of the file is in the list; empty for one that is left out."""
    titles = models.JSONField(default=list, db_default=[])
    """The titles of the columns in the file; empty if its columns can't be chosen."""
    fixed = models.JSONField(default=dict, db_default={})
    """The values of columns that the file doesn't have, by column of the list."""
    mends = models.JSONField(default=list, db_default=[])
    """What replaces refused cells when the parts are read again: see `rme.tenants.imports`."""
    delimiter = models.CharField(max_length=1, default=",")
    encoding = models.CharField(max_length=12, default="", db_default="")
    """In which the file was read; empty for one that an earlier release read."""
    state = models.CharField(max_length=10, choices=State.choices, default=State.RUNNING)
    rows = models.PositiveIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    added = models.PositiveIntegerField(default=0)
    replaced = models.PositiveIntegerField(default=0)
    rejected = models.PositiveIntegerField(default=0)
    started_by = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    turn_at = models.DateTimeField(db_default=Now(), editable=False)
    """When one of its parts was last imported: the file with the earliest time is next."""
    finished_at = models.DateTimeField(null=True, blank=True)
    dry_run = models.BooleanField(default=False, db_default=False)
    """All checks, nothing stored. The file is kept until it is imported or cancelled."""
    digits = models.CharField(
        max_length=13,
        choices=[(each.value, each.value) for each in Digits],
        default=Digits.UNSAID.value,
        db_default=Digits.UNSAID.value,
    )
    """How to read phone numbers without `+`."""

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name

    def open_parts(self) -> models.QuerySet[FilePart]:
        """Return the parts that are not imported yet, or that the dry run has not read."""
        run: Any = self  # its parts are the subclass's
        is_open = {"checked": False} if self.dry_run else {"content__isnull": False}
        parts: models.QuerySet[FilePart] = run.parts.filter(**is_open)
        return parts

    def close_part(self, part: FilePart) -> list[str]:
        """Mark a part as imported, or as read; return the fields that changed."""
        if self.dry_run:
            part.checked = True
            return ["checked"]
        part.content = None
        return ["content"]

    @property
    def read_as(self) -> str:
        """Return how the file was read, like `Windows-1252, separated by semicolons`."""
        if not self.encoding:
            return ""
        separator = _DELIMITER_NAMES.get(self.delimiter, f"“{self.delimiter}”")
        return gettext("%(encoding)s, separated by %(separator)s") % {
            "encoding": self.encoding,
            "separator": separator,
        }

    @property
    def unchanged(self) -> int:
        """Return how many rows changed nothing."""
        return self.done - self.added - self.replaced - self.rejected

    @property
    def stage(self) -> str:
        """Return in words how far it has come, as people see it."""
        match self.state, self.dry_run:
            case self.State.RUNNING, True:
                return gettext("Being checked")
            case self.State.DONE, True:
                return gettext("Checked, not imported yet")
        if self.is_discarded:
            return gettext("Discarded, nothing imported")
        return str(self.State(self.state).label)

    @property
    def is_discarded(self) -> bool:
        """Return whether it ended before the first row was imported."""
        return self.state == self.State.CANCELLED and (self.dry_run or not self.done)
