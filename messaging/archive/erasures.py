"""People who were erased: their data in files is hidden at once, and rewritten by the job.

An erasure is a row until all files with the person have been rewritten. Each reading of a file
applies it meanwhile.
"""

from collections.abc import Collection

from django.db.models import Q

from messaging.models import ArchiveErasure, ArchiveFile
from messaging.store.archived import contact_hash


def pending(organization_id: str) -> dict[int, str]:
    """Return the erasures that are not in all files yet: contacts by the erasure's id."""
    rows = ArchiveErasure.objects.filter(organization_id=organization_id)
    return dict(rows.values_list("pk", "contact_id"))


def files_with(erasure: ArchiveErasure) -> Q:
    """Return the condition of the files in which a person is still to be erased."""
    hashed = contact_hash(erasure.organization_id, erasure.contact_id)
    return Q(
        state=ArchiveFile.State.LIVE,
        organization_id=erasure.organization_id,
        contacts__contains=[hashed],
        erased_through__lt=erasure.pk,
    )


def hashes(organization_id: str, contacts: Collection[str]) -> list[int]:
    return sorted({contact_hash(organization_id, each) for each in contacts})
