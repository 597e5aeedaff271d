"""Messages that have left PostgreSQL for the archive, as the service sees them: docs/archive.md.

`archive` is the package `messaging.archive` where `ARCHIVE_URL` is set, and else one that is empty.
The index of its files is in PostgreSQL in any case, with who is still to be erased in them.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils.module_loading import import_string

from messaging.models import ArchiveErasure, ArchiveFile, Attempt, Delivery, Event, Message
from rme.core.db import locks

_LOCK_KIND = 15
"""The kind of the lock, as in all releases."""


class ArchivedMessage(NamedTuple):
    """A message with all its rows, as model instances; contents are not archived."""

    message: Message
    deliveries: Sequence[Delivery]
    """In the order of the recipients."""
    attempts: Sequence[Attempt]
    events: Sequence[Event]
    """By time."""


class ArchivedPage(NamedTuple):
    """Messages, newest first. All with ids from `border` on were looked at; None: all were."""

    records: Sequence[ArchivedMessage]
    border: UUID | None


class Archive(Protocol):
    """Reads archived messages. Raises errors.Unavailable if the files can't be read."""

    def may_be_moving(self, key: UUID) -> bool:
        """Return whether a message is old enough that it may be moved while it is read."""

    def find(self, owner: Q, key: UUID) -> ArchivedMessage | None:
        """Return an archived message of some organizations by its id."""

    def page(
        self,
        organization_id: str,
        *,
        since: UUID | None,
        end: UUID | None,
        contacts: Sequence[str] = (),
        matches: Callable[[ArchivedMessage], bool],
        limit: int,
    ) -> ArchivedPage:
        """Return the newest messages that match, with ids from `since` to below `end`.

        Attempts and events are not read.
        """

    def of_contact(self, organization_id: str, contact_id: str) -> Iterator[ArchivedMessage]:
        """Return all messages to a person, oldest first."""

    def problem(self, now: datetime) -> str | None:
        """Return what is wrong with the archive; None: nothing is."""


class _NoArchive:
    def may_be_moving(self, key: UUID) -> bool:
        return False

    def find(self, owner: Q, key: UUID) -> None:
        return None

    def page(self, organization_id: str, **_: object) -> ArchivedPage:
        return ArchivedPage([], None)

    def of_contact(self, organization_id: str, contact_id: str) -> Iterator[ArchivedMessage]:
        return iter(())

    def problem(self, now: datetime) -> None:
        return None


def archive() -> Archive:
    """Return the archive of this deployment."""
    if settings.ARCHIVE is None:
        return _NoArchive()
    plugged: Archive = import_string(settings.ARCHIVE_CLASS)()
    return plugged


# --- erasing a person -----------------------------------------------------------------------------
def request_erasure(organization_id: str, contact_id: str) -> int:
    """Have a person erased in the files, in the caller's transaction; return the number of files.

    Until its end nothing moves into the archive: a file that is being written has what PostgreSQL
    has, or is discarded. Also if the archive was switched off: its files are still there.
    """
    hold(organization_id)
    files = ArchiveFile.objects.filter(
        state=ArchiveFile.State.LIVE,
        organization_id=organization_id,
        contacts__contains=[contact_hash(organization_id, contact_id)],
    ).count()
    if files:
        ArchiveErasure.objects.create(organization_id=organization_id, contact_id=contact_id)
    return files


def hold(organization_id: str) -> None:
    """Wait for the hand-over or the erasure of an organization that is under way.

    Until the end of the transaction neither begins: what is erased in PostgreSQL cannot be on its
    way to a file.
    """
    locks.until_commit_one(f"archive {organization_id}", _LOCK_KIND)


def contact_hash(organization_id: str, contact_id: str) -> int:
    """Return what a contact is found by in the index: 32 bits.

    Two contacts may have the same; then a file is read in vain.
    """
    text = f"{organization_id}\0{contact_id}".encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), signed=True)
