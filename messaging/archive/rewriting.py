"""Erase people in files: replace each file that has their data by one without it."""

from time import monotonic

import structlog

from messaging.archive import contact_files, erasures, hand_over
from messaging.models import ArchiveErasure, ArchiveFile
from rme.tenants import organizations

log = structlog.get_logger(__name__)


def erase(until: float) -> bool:
    """Rewrite the files with people who were erased; return whether all are. Raises StoreFailed.

    A file is rewritten once for all erasures of its organization that are pending.
    """
    for erasure in ArchiveErasure.objects.filter(organizations.served()).order_by("pk"):
        while file := ArchiveFile.objects.filter(erasures.files_with(erasure)).first():
            if monotonic() > until or not _rewrite(file):
                return False
        erasure.delete()
        log.info("archive.erased", organization_id=erasure.organization_id)
    return True


def _rewrite(file: ArchiveFile) -> bool:
    pending = erasures.pending(file.organization_id)
    old = contact_files.read(file)
    table = contact_files.without(old, file.organization_id, set(pending.values()))
    new_file = hand_over.write(file.organization_id, table, erased=list(pending), replaced=file)
    return new_file is not None
