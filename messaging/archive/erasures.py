"""People who were erased: their data in files is hidden at once, and rewritten by the job.

An erasure is a row until all files with the person have been rewritten. Each reading of a file
applies it meanwhile.
"""

import hashlib
from collections.abc import Collection

from django.db.models import Q

from messaging.models import ArchiveErasure, ArchiveFile
from rme.core.db import locks

_KIND = 15
"""The kind of the lock, as in all releases."""


def contact_hash(organization_id: str, contact_id: str) -> int:
    """Return what a contact is found by in the index: 32 bits.

    Two contacts may have the same; then a file is read in vain.
    """
    text = f"{organization_id}\0{contact_id}".encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), signed=True)


def hold(organization_id: str) -> None:
    """Wait for the hand-over or the erasure of an organization that is under way.

    Until the end of the transaction neither begins: what is erased in PostgreSQL cannot be on its
    way to a file.
    """
    locks.until_commit_one(f"archive {organization_id}", _KIND)


def request(organization_id: str, contact_id: str) -> int:
    """Have a person erased in the files, in the caller's transaction, which holds `hold`.

    Return the number of files. A file that is being written has what PostgreSQL has, or is
    discarded. Also if the archive was switched off: its files are still there.
    """
    hashed = contact_hash(organization_id, contact_id)
    files = ArchiveFile.objects.filter(
        state=ArchiveFile.State.LIVE, organization_id=organization_id, contacts__contains=[hashed]
    ).count()
    if files:
        person = {"organization_id": organization_id, "contact_id": contact_id}
        ArchiveErasure.objects.create(**person)
    return files


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
