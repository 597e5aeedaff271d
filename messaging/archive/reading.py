"""Reading archived messages: one by its id, pages of them, and all of a person.

The index is read after the tables of PostgreSQL: a message that is moved meanwhile is then found
twice rather than not at all, and callers take it once.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, count
from time import monotonic
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet

from messaging.archive import erasures, records
from messaging.domain.sentences import sentence
from messaging.models import ArchiveFile, ArchiveProgress
from messaging.store.archived import ArchivedMessage, ArchivedPage
from rme.core import ids

CANDIDATES = 20
"""The most files that are tried for an id without its organization."""
FILES = 11
"""Files that are asked of the index at once; a page seldom opens more."""
LATE = timedelta(days=1)
"""How far the job may be behind before health tells of it."""
_LEAST, _GREATEST = UUID(int=0), UUID(int=(1 << 128) - 1)


class ParquetArchive:
    """The archive in Parquet files, as `messaging.store.archived` asks for it."""

    def may_be_moving(self, key: UUID) -> bool:
        age = datetime.now(UTC) - ids.moment(key)
        return age > timedelta(days=settings.ARCHIVE_AFTER_DAYS) - ids.SKEW

    def find(self, owner: Q, key: UUID) -> ArchivedMessage | None:
        """Return an archived message by its id: one query, another if a file may have it."""
        from messaging.archive import file_reader  # it imports pyarrow: 0.06 s of CPU and 40 MB

        until = monotonic() + settings.ARCHIVE_SECONDS
        files = _live().filter(owner, first_id__lte=key, last_id__gte=key)
        for file in files.order_by("organization_id", "-last_id")[:CANDIDATES]:
            record = file_reader.find(file, key, until)
            if record is not None:
                _hide(file.organization_id, [record])
                return record
        return None

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
        """Return a page: one query, another if a file is read; at most ten row groups."""
        since, end = since or _LEAST, end or _GREATEST
        reached = _of(organization_id, contacts).filter(first_id__lt=end, last_id__gte=since)
        files = _one_by_one(reached.order_by("-last_id", "pk"))
        first = next(files, None) if since < end else None
        if first is None:
            return ArchivedPage([], None)
        from messaging.archive.scan import Scan  # it imports pyarrow

        until = monotonic() + settings.ARCHIVE_SECONDS
        scan = Scan(chain([first], files), since, end, until, contacts)
        archived: list[ArchivedMessage] = []
        while len(archived) < limit and (record := scan.next()):
            if matches(record):
                archived.append(record)
        _hide(organization_id, archived)
        return ArchivedPage(archived, scan.border)

    def of_contact(self, organization_id: str, contact_id: str) -> Iterator[ArchivedMessage]:
        """Yield the messages to a person, file by file."""
        from messaging.archive import contact_files  # it imports pyarrow

        for file in _of(organization_id, [contact_id]).order_by("first_id").iterator():
            archived = contact_files.messages_to(file, {contact_id})
            _hide(organization_id, archived)
            yield from archived

    def problem(self, now: datetime) -> str | None:
        """Return what is wrong, None if nothing is; one query."""
        row = ArchiveProgress.objects.filter(pk=1).first()
        if row is None:
            return None  # no run yet; if there are no workers, their own check reports that
        if row.failed_at is not None:
            return sentence("its store fails: %(reason)s", reason=row.failure)
        since = row.up_to_date_at or row.started_at
        if now - since > LATE:
            return sentence("is behind since %(time)s UTC", time=f"{since:%Y-%m-%d %H:%M}")
        return None


def _live() -> QuerySet[ArchiveFile]:
    return ArchiveFile.objects.filter(state=ArchiveFile.State.LIVE).defer("contacts")


def _of(organization_id: str, contacts: Sequence[str]) -> QuerySet[ArchiveFile]:
    files = _live().filter(organization_id=organization_id)
    if contacts:
        files = files.filter(contacts__overlap=erasures.hashes(organization_id, contacts))
    return files


def _one_by_one(files: QuerySet[ArchiveFile]) -> Iterator[ArchiveFile]:
    """Yield files; one query for each FILES of them."""
    for start in count(0, FILES):
        batch = list(files[start : start + FILES])
        yield from batch
        if len(batch) < FILES:
            return


def _hide(organization_id: str, archived: Sequence[ArchivedMessage]) -> None:
    """Hide what is still to be erased in the files."""
    hidden = set(erasures.pending(organization_id).values()) if archived else set()
    for record in archived if hidden else ():
        records.erase(record, hidden)
