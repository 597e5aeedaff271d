"""The index of the archive: which files there are, what is to be erased in them, and how it goes.

The messages themselves are in files (`messaging.store.archived`, docs/archive.md).
"""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models.functions import Now


class ArchiveFile(models.Model):
    """A file of the archive: messages of one organization that were accepted on one day (UTC).

    A file is never changed: where messages are added or a person is erased, another takes its
    place.
    """

    class State(models.TextChoices):
        """What a file is worth: only a LIVE one is read."""

        WRITING = "WRITING"
        LIVE = "LIVE"
        REMOVED = "REMOVED"
        """Still to be deleted in the store."""

    id = models.BigAutoField(primary_key=True)
    organization_id = models.CharField(max_length=64)
    path = models.CharField(max_length=400, unique=True)
    state = models.CharField(max_length=8, choices=State, default=State.WRITING)
    first_id = models.UUIDField(help_text="The least id of its messages.")
    last_id = models.UUIDField()
    messages = models.IntegerField()
    size = models.IntegerField(help_text="In bytes.")
    digest = models.CharField(max_length=64, help_text="SHA-256 of the file.")
    version = models.SmallIntegerField(help_text="The version of the format.")
    contacts = ArrayField(
        models.IntegerField(), help_text="Hashes of the contacts, to find a person's files."
    )
    erased_through = models.BigIntegerField(
        default=0, help_text="The last erasure that was applied to it."
    )
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by archive.reading: the file of an id, and files from the newest on
            models.Index(
                fields=["organization_id", "-last_id"],
                name="archive_file_of_message",
                condition=models.Q(state="LIVE"),
            ),
            # read by archive.reading with contacts, and by erasures
            GinIndex(
                fields=["contacts"],
                name="archive_file_of_contact",
                condition=models.Q(state="LIVE"),
            ),
            # read by archive.removal; nearly always empty
            models.Index(
                fields=["changed_at"],
                name="archive_file_unfinished",
                condition=~models.Q(state="LIVE"),
            ),
        ]

    def __str__(self) -> str:
        return self.path


class ArchiveErasure(models.Model):
    """A person who was erased, and whose files are still to be rewritten."""

    id = models.BigAutoField(primary_key=True)
    organization_id = models.CharField(max_length=64)
    contact_id = models.CharField(max_length=64)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by archive.erasures with each reading of a file; nearly always empty
            models.Index(fields=["organization_id", "id"], name="archive_erasure_pending"),
        ]

    def __str__(self) -> str:
        return self.contact_id


class ArchiveProgress(models.Model):
    """How the job goes: one row."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    started_at = models.DateTimeField(db_default=Now())
    up_to_date_at = models.DateTimeField(null=True)
    """When all that was due had been archived."""
    failed_at = models.DateTimeField(null=True)
    """When the store failed, if it did in the last run."""
    failure = models.CharField(max_length=200, default="")
    reached = models.CharField(max_length=64, default="")
    """The organization with which the next run goes on."""

    def __str__(self) -> str:
        return f"up to date at {self.up_to_date_at}"
