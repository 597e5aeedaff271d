"""Carrying requests out: a worker exports or erases, as the commands do, and stores the result.

Each step may be repeated: a request that a killed worker left behind is carried out again.
"""

import io
import zipfile
from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from uuid import UUID

import orjson
from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import gettext

from messaging.consent import data_export, erasure
from messaging.consent.privacy import requests
from messaging.models import PrivacyFile, PrivacyRequest
from rme.core import errors
from rme.core.db import clock, locks
from rme.core.db.due import next_turn
from rme.tenants import audit
from rme.tenants.audit import Action, Actor

Kind, State = PrivacyRequest.Kind, PrivacyRequest.State
NOTHING = "Nothing is stored."


def work() -> bool:
    """Carry out the request that has waited longest; return whether more may be waiting."""
    request_id = next_turn(PrivacyRequest)
    return request_id is not None and carry_out(request_id)


def carry_out(request_id: UUID) -> bool:
    """Carry a request out if it was ordered; return whether it need not be tried again."""
    with locks.alone(f"privacy_request {request_id}") as is_alone:
        if not is_alone:
            return False
        row = PrivacyRequest.objects.filter(pk=request_id, state=State.RUNNING).first()
        if row is None:  # answered, or deleted with its organization
            return True
        try:
            contact_id = row.contact_id or _contact_of(row)
            # before anything is read: by this id an erasure finds the request
            PrivacyRequest.objects.filter(pk=row.pk).update(contact_id=contact_id)
            if row.kind == Kind.EXPORT:
                return _export(row, contact_id)
            return _erase(row, contact_id)
        except errors.Unavailable as error:
            return _wait(row, gettext("Waits: %(message)s") % {"message": error.message})


def delete_expired() -> int:
    """Delete the files that have expired; return their number."""
    _, deleted = PrivacyFile.objects.filter(expires_at__lte=Now()).delete()
    return deleted.get(PrivacyFile._meta.label, 0)


def _contact_of(row: PrivacyRequest) -> str:
    """Return the contact who has got the address since it was recorded, or an empty text."""
    matches = requests.subject_of(row.organization_id, row.address).people
    return matches[0].id if len(matches) == 1 else ""


def _wait(row: PrivacyRequest, result: str) -> bool:
    """Store what a request waits for; a later turn tries again."""
    PrivacyRequest.objects.filter(pk=row.pk).update(result=result)
    return False


def _export(row: PrivacyRequest, contact_id: str) -> bool:
    """Store everything about the person as a file."""
    sections = (
        data_export.export_contact(row.organization_id, contact_id)
        if contact_id
        else data_export.export_address(row.organization_id, row.address)
    )
    with transaction.atomic():
        # Under the lock of the row, for which an erasure waits: it must leave no file.
        current = PrivacyRequest.objects.select_for_update().filter(pk=row.pk).first()
        if current is None:
            return True  # deleted with its organization
        if current.erased_at != row.erased_at:
            return False  # what was read is erased: another turn reads again
        if sections is not None:
            content = _zipped(sections)
            expires_at = clock.now() + timedelta(days=settings.PRIVACY_FILE_DAYS)
            PrivacyFile.objects.update_or_create(
                request_id=row.pk,
                defaults={"content": content, "size": len(content), "expires_at": expires_at},
            )
        _finish(row, contact_id, summary_of(sections) if sections else NOTHING)
        entry = audit.about(row, Action.EXPORTED, text="all of a person", contact_id=contact_id)
        audit.record(Actor(**row.actor), [entry])
    return True


def _zipped(sections: Mapping[str, object]) -> bytes:
    """Return a ZIP file with the data as JSON."""
    buffer = io.BytesIO()
    text = orjson.dumps(sections, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("person.json", text)
    return buffer.getvalue()


def summary_of(sections: Mapping[str, object]) -> str:
    """Return what an export has, as numbers."""
    counts = {name: len(rows) for name, rows in sections.items() if isinstance(rows, list)}
    return in_words(counts) or gettext("The contact.")


def _erase(row: PrivacyRequest, contact_id: str) -> bool:
    """Erase the person; what is being sent at this moment is left for a later turn."""
    with transaction.atomic():
        if not contact_id:
            _finish(row, "", gettext("No contact has this address. Its suppressions stay."))
            return True
        erased = erasure.erase(row.organization_id, contact_id, Actor(**row.actor))
        words = in_words(erased.counts)
        if erased.under_way:
            return _wait(
                row,
                gettext("Waits for %(under_way)s that are being sent. %(words)s")
                % {"under_way": erased.under_way, "words": words},
            )
        # A turn before may have erased all but what was being sent.
        earlier_counts = row.result.partition(". ")[2]
        _finish(row, contact_id, "; ".join(filter(None, [earlier_counts, words])) or NOTHING)
    return True


def in_words(counts: Mapping[str, int]) -> str:
    """Return the counts that are not 0 as a text."""
    return ", ".join(f"{name}: {count}" for name, count in counts.items() if count)


def _finish(row: PrivacyRequest, contact_id: str, result: str) -> None:
    PrivacyRequest.objects.filter(pk=row.pk, state=State.RUNNING).update(
        state=State.DONE,
        contact_id=contact_id,
        address="",
        note="",
        result=result[:1000],
        finished_at=Now(),
    )


def record(kind: str, organization_id: str, contact_id: str, result: str, *, waits: bool) -> None:
    """Record what a command did; `waits`: a worker must go on with it."""
    now = clock.now()
    PrivacyRequest.objects.create(
        organization_id=organization_id,
        kind=kind,
        state=State.RUNNING if waits else State.DONE,
        contact_id=contact_id,
        requested_at=now,
        due_at=now + timedelta(days=settings.PRIVACY_REQUEST_DAYS),
        recorded_by=audit.COMMAND_LINE.name,
        actor=asdict(audit.COMMAND_LINE),
        result=result[:1000],
        finished_at=None if waits else now,
    )
