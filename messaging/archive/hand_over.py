"""Handing files over: a file is written first, and one transaction then makes it count.

A crash leaves at most a file that is never read, and a row that records this:

1. a row WRITING is committed: the file's path is known before the file exists;
2. the file is written, and read back;
3. one transaction makes the row LIVE, those it replaces REMOVED, and deletes what the file now
   holds from PostgreSQL. It is rolled back if any of that changed since it was read;
4. files of REMOVED rows are deleted later, and their rows after them (`removal`).

Both transactions ask whether the organization is here: if it left in between, the row WRITING was
copied with it, and the file is removed where the organization is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import pyarrow as pa
import structlog
from django.db import transaction
from django.db.models.functions import Now

from messaging.archive import erasures, parquet, stores
from messaging.archive.records import RowVersions
from messaging.models import ArchiveErasure, ArchiveFile
from messaging.store import archived
from messaging.store.retention import ended
from rme.core import ids
from rme.core.errors import Misdirected, Unavailable
from rme.tenants import organizations

log = structlog.get_logger(__name__)


class _Changed(Exception):
    """Something changed since it was read: another run does it again."""


class _Elsewhere(Exception):
    """The organization is elsewhere, or is moving: this process writes nothing for it."""


@dataclass(frozen=True, slots=True)
class MovedMessages:
    """Messages that leave PostgreSQL, as they were read."""

    keys: Sequence[UUID]
    versions: RowVersions


def write(
    organization_id: str,
    table: pa.Table,
    *,
    erased: Sequence[int],
    batches: Sequence[MovedMessages] = (),
    replaced: ArchiveFile | None = None,
) -> ArchiveFile | None:
    """Write a table as a file, and put it in the place of the rows and the file it was made of.

    `erased` are the erasures that were pending when they were read. Return None if something
    changed meanwhile, or the organization left; then all is as it was. Raises StoreFailed.
    """
    through = max(erased, default=0)
    try:
        file = _announce(organization_id, table)
        stores.write(file.path, file.content)
        with transaction.atomic():
            _require_here(organization_id)
            archived.hold(organization_id)
            pending = ArchiveErasure.objects.filter(organization_id=organization_id)
            if set(pending.values_list("pk", flat=True)) - set(erased):
                raise _Changed  # the file has what was to be erased
            if replaced is not None:
                _replace(replaced)
            ArchiveFile.objects.filter(pk=file.row.pk).update(
                state=ArchiveFile.State.LIVE, erased_through=through, changed_at=Now()
            )
            for batch in batches:
                if RowVersions(**ended.delete(batch.keys)) != batch.versions:
                    raise _Changed
    except _Changed:
        remove([file.row])
        log.info("archive.changed_meanwhile", path=file.path)
        return None
    except _Elsewhere:
        log.info("archive.elsewhere", organization_id=organization_id)
        return None
    return file.row


@dataclass(frozen=True, slots=True)
class _NewFile:
    """A file that is to be written, and its row."""

    row: ArchiveFile
    content: bytes

    @property
    def path(self) -> str:
        return self.row.path


def _announce(organization_id: str, table: pa.Table) -> _NewFile:
    """Store the row of a new file, so that the file is known whatever happens next."""
    content = parquet.write(table)
    keys = table.column("id")
    first, last = UUID(keys[0].as_py()), UUID(keys[-1].as_py())
    row = ArchiveFile(
        organization_id=organization_id,
        path=_path(organization_id, first),
        first_id=first,
        last_id=last,
        messages=table.num_rows,
        size=len(content),
        digest=stores.digest_of(content),
        version=parquet.VERSION,
        contacts=erasures.hashes(organization_id, parquet.contacts_of(table)),
    )
    with transaction.atomic():
        _require_here(organization_id)
        row.save(force_insert=True)
    return _NewFile(row, content)


def _require_here(organization_id: str) -> None:
    """Raise _Elsewhere if an organization is not written here; to be called in a transaction.

    A move waits for the transactions that began before its pause.
    """
    try:
        organizations.require_served(organization_id, at_once=True)
    except (Misdirected, Unavailable) as error:
        raise _Elsewhere from error


def _path(organization_id: str, first: UUID) -> str:
    """Return a new path: no two files ever have the same."""
    moment: datetime = ids.moment(first)
    return f"{organization_id}/{moment:%Y/%m/%d}/{moment:%H%M%S}-{ids.new_text_id()}.parquet"


def _replace(file: ArchiveFile) -> None:
    live = ArchiveFile.objects.filter(pk=file.pk, state=ArchiveFile.State.LIVE)
    if not live.update(state=ArchiveFile.State.REMOVED, changed_at=Now()):
        raise _Changed


def remove(files: Sequence[ArchiveFile]) -> None:
    """Mark files that are not to be read any more; `removal` deletes them."""
    ArchiveFile.objects.filter(pk__in=[each.pk for each in files]).update(
        state=ArchiveFile.State.REMOVED, changed_at=Now()
    )
