"""Moving an organization's ended messages into files: day by day, oldest first."""

from datetime import datetime, timedelta
from time import monotonic
from uuid import UUID

import structlog

from messaging.archive import contact_files, erasures, hand_over, parquet, records
from messaging.archive.hand_over import MovedMessages
from messaging.models import ArchiveFile
from messaging.store.retention import ended
from rme.core import ids

log = structlog.get_logger(__name__)

FILE = 10_000
"""The most messages of a file: what one transaction deletes, and what an erasure rewrites."""
READ = 1_000
"""Messages that are read from PostgreSQL at once."""
_DAY = timedelta(days=1)


def move(organization_id: str, cutoff: datetime, until: float) -> bool:
    """Archive messages that ended, and did not change since a moment; return whether all are.

    Raises StoreFailed. A step lasts as long as it takes to move FILE messages.
    """
    start, end = UUID(int=0), ids.at_least(cutoff)
    while True:
        oldest = ended.first(organization_id, start, end)
        if oldest is None:
            return True
        if monotonic() > until:
            return False
        day = ids.moment(oldest).replace(hour=0, minute=0, second=0, microsecond=0)
        last = min(end, ids.at_least(day + _DAY))
        keys = ended.find(organization_id, oldest, last, cutoff=cutoff, limit=FILE)
        if keys and not _move(organization_id, keys, day):
            return False  # it changed meanwhile; the next run reads it again
        start = last if len(keys) < FILE else keys[-1]


def _move(organization_id: str, keys: list[UUID], day: datetime) -> bool:
    """Write messages of one day to a file, with those of the day's last file if it has room."""
    pending = erasures.pending(organization_id)
    room = FILE - len(keys)
    file = (
        ArchiveFile.objects.filter(
            organization_id=organization_id,
            state=ArchiveFile.State.LIVE,
            last_id__gte=ids.at_least(day),
            last_id__lt=ids.at_least(day + _DAY),
            messages__lte=room,
        )
        .order_by("messages")
        .first()
    )
    tables, batches = [], []
    if file is not None:
        old = contact_files.read(file)
        tables.append(contact_files.without(old, organization_id, set(pending.values())))
    for i in range(0, len(keys), READ):
        part = keys[i : i + READ]
        messages, versions = records.load(part)
        tables.append(parquet.table_of(messages))
        batches.append(MovedMessages(part, versions))
    table = parquet.merge(tables)
    archive_file = hand_over.write(
        organization_id, table, erased=list(pending), batches=batches, replaced=file
    )
    if archive_file is not None:
        log.info(
            "archive.written", path=archive_file.path, messages=len(keys), bytes=archive_file.size
        )
    return archive_file is not None
