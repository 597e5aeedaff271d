"""Deleting files: replaced ones, those that a crash left behind, and those that are too old.

Several deployments may share the store: only where an organization is served its files are deleted.
"""

from datetime import datetime, timedelta

from django.db.models.functions import Now

from messaging.archive import stores
from messaging.models import ArchiveFile
from rme.core import ids
from rme.tenants import organizations

GRACE = timedelta(minutes=2)
"""How long a replaced file stays for calls that read the index before."""
BATCH = 100


def claim_unfinished() -> None:
    """Mark the files that a run before did not finish. Only the job may call it, which is alone."""
    ArchiveFile.objects.filter(organizations.served(), state=ArchiveFile.State.WRITING).update(
        state=ArchiveFile.State.REMOVED, changed_at=Now()
    )


def claim_expired(cutoff: datetime) -> None:
    """Mark the files whose messages were all accepted before a moment."""
    ArchiveFile.objects.filter(
        organizations.served(), state=ArchiveFile.State.LIVE, last_id__lt=ids.at_least(cutoff)
    ).update(state=ArchiveFile.State.REMOVED, changed_at=Now())


def delete(*, grace: timedelta = GRACE) -> int:
    """Delete files that were marked a while ago; return how many. Raises StoreFailed.

    The row is deleted after the file, so a file is never forgotten.
    """
    marked = ArchiveFile.objects.filter(
        organizations.served(), state=ArchiveFile.State.REMOVED, changed_at__lt=Now() - grace
    )
    removed_files = list(marked.order_by("changed_at").values_list("pk", "path")[:BATCH])
    stores.delete([path for _, path in removed_files])
    ArchiveFile.objects.filter(pk__in=[key for key, _ in removed_files]).delete()
    return len(removed_files)
