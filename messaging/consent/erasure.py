"""Erasure of a person (GDPR Art. 17).

What stays does not describe the person: that a message was sent, when, by which provider and with
which outcome, under a contact id that no longer leads anywhere. So statistics stay correct and
bills can be checked. Suppressed addresses stay too, so that an old list that is imported again does
not make the person a recipient.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import models, transaction
from django.db.models.functions import Now

from messaging.consent import gate_lock, ledger
from messaging.domain.progress.transitions import Transition
from messaging.domain.statuses import EventType, Status, StatusReason
from messaging.models import (
    BulkAction,
    ConsentEntry,
    ConsentEntryInTest,
    Delivery,
    PrivacyFile,
    PrivacyRequest,
    Suppression,
    SuppressionInTest,
)
from messaging.store import lookups
from messaging.store.archived import request_erasure
from messaging.store.events import EventRow, write_events
from messaging.store.people import erasure
from messaging.store.transitions import apply_transitions
from push.models import Device
from rme.core import ids
from rme.core.db import clock
from rme.crm.models import Case, CaseComment, Contact, EventRegistration
from rme.tenants import audit
from rme.tenants.audit import Action, Actor

ERASED = "(erased)"
"""The value of a text that cannot be empty."""


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased."""

    counts: Mapping[str, int]
    """Rows by kind."""
    under_way: int
    """Deliveries that a worker is sending. They are left for another run."""


def erase(organization_id: str, contact_id: str, actor: Actor = audit.COMMAND_LINE) -> Erased:
    """Erase a person of one organization in one transaction. To repeat it is no error.

    What has not been sent yet is stopped. The number of statements does not depend on the number of
    rows.
    """
    person: dict[str, Any] = {"organization_id": organization_id, "contact_id": contact_id}
    deliveries = Delivery.objects.filter(
        lookups.of_contact(contact_id), organization_id=organization_id
    )
    with transaction.atomic():
        archived_files = request_erasure(organization_id, contact_id)
        gate_lock.take_exclusive([organization_id])  # before any row: see its order
        counts = {
            **_erase_platform(organization_id, contact_id),
            "devices": _delete(Device.objects.filter(**person)),
            "suppressions": _delete(Suppression.objects.filter(**person))
            + _delete(SuppressionInTest.objects.filter(**person)),
            "consent": ledger.erase(organization_id, contact_id)
            + _delete(ConsentEntryInTest.objects.filter(**person)),
            "stopped": _stop(deliveries),
            **erasure.erase_messages(organization_id, contact_id),
            "actions": BulkAction.objects.filter(**person)
            .exclude(scope=ERASED)
            .update(scope=ERASED, reason=ERASED),
            "requests": _erase_requests(person),
            "audit": audit.erase(organization_id, contact_id),
        }
        if archived_files:
            counts["archive files"] = archived_files
        _record(actor, organization_id, contact_id, counts)
        under_way = deliveries.filter(status=Status.SENDING).count()
    return Erased(counts, under_way)


def _erase_requests(person: Mapping[str, Any]) -> int:
    """Delete the files of the person's exports, and the texts of the requests."""
    requests = PrivacyRequest.objects.filter(**person)
    # First, so that this waits for an export that is storing its file.
    requests.filter(kind=PrivacyRequest.Kind.EXPORT, state="RUNNING").update(erased_at=Now())
    PrivacyFile.objects.filter(request__in=requests).delete()
    texts = dict.fromkeys(("note", "reason", "address"), "")
    return requests.exclude(**texts).update(**texts)


def preview(organization_id: str, contact_id: str) -> dict[str, int]:
    """Return what an erasure would find, by the names of its counts; five queries."""
    person: dict[str, Any] = {"organization_id": organization_id, "contact_id": contact_id}
    deliveries = Delivery.objects.filter(**person)
    return {
        "stopped": deliveries.filter(status__in=list(_ENDINGS)).count(),
        "deliveries": deliveries.count(),
        "consent": ConsentEntry.objects.filter(**person).count(),
        "suppressions": Suppression.objects.filter(**person).count(),
        "devices": Device.objects.filter(**person).count(),
    }


def _record(actor: Actor, organization_id: str, contact_id: str, counts: Mapping[str, int]) -> None:
    """Record an erasure that found something; the entry has no personal data."""
    summary = ", ".join(f"{name}: {count}" for name, count in counts.items() if count)
    if summary:
        kind = Contact._meta.label_lower
        entry = audit.NewEntry(Action.ERASED, organization_id, kind, contact_id, text=summary)
        audit.record(actor, [entry])


def _erase_platform(organization_id: str, contact_id: str) -> dict[str, int]:
    """Erase the person's records in the embedded platform; another platform erases its own."""
    key = ids.parse(contact_id) or UUID(int=0)  # no record has this id
    person: dict[str, Any] = {"organization_id": organization_id, "contact_id": key}
    registrations = EventRegistration.objects.filter(**person).exclude(name=ERASED)
    if not Contact.objects.filter(pk=key).exclude(organization_id=organization_id).exists():
        _erase_log(Contact, [contact_id])  # also of a contact that was deleted in the admin
    return {
        "cases": _erase_cases(Case.objects.filter(**person).exclude(issue=ERASED)),
        "registrations": registrations.update(name=ERASED, email=""),
        "contacts": _delete(Contact.objects.filter(organization_id=organization_id, pk=key)),
    }


def _erase_cases(cases: models.QuerySet[Case]) -> int:
    """Erase the texts, comments and change log of cases; the cases themselves stay."""
    case_ids = list(cases.values_list("pk", flat=True))
    _erase_log(Case, [str(key) for key in case_ids])
    CaseComment.objects.filter(case_id__in=case_ids).delete()
    return Case.objects.filter(pk__in=case_ids).update(subject=ERASED, issue=ERASED)


def _delete(rows: models.QuerySet[Any]) -> int:
    """Delete rows, and erase their entries in the log of former releases, which hold values."""
    row_ids: list[UUID] = list(rows.values_list("pk", flat=True))
    _erase_log(rows.model, [str(key) for key in row_ids])
    rows.delete()
    return len(row_ids)


def _erase_log(model: type[models.Model], keys: Collection[str]) -> None:
    LogEntry.objects.filter(
        content_type=ContentType.objects.get_for_model(model), object_id__in=keys
    ).update(object_repr=ERASED, change_message="")


class _Ending(NamedTuple):
    """How a delivery that is not final yet ends."""

    status: Status
    reason: StatusReason | None
    event: EventType


_ENDINGS = {
    Status.SCHEDULED: _Ending(Status.CANCELLED, None, EventType.CANCELLED),
    Status.ACCEPTED: _Ending(Status.BLOCKED, StatusReason.UNREACHABLE, EventType.BLOCKED),
    Status.UNKNOWN: _Ending(Status.FAILED, StatusReason.PROVIDER_ERROR, EventType.FAILED),
}


def _stop(deliveries: models.QuerySet[Delivery]) -> int:
    """End those of deliveries that are not final; return their number."""
    pending = deliveries.select_for_update().filter(status__in=list(_ENDINGS)).order_by("pk")
    deliveries_by_id = {row.pk: row for row in pending}
    stopped = apply_transitions([_stopped(row) for row in deliveries_by_id.values()])
    write_events([_event(deliveries_by_id[identifier]) for identifier in stopped])
    return len(stopped)


def _stopped(delivery: Delivery) -> Transition:
    ending = _ENDINGS[Status(delivery.status)]
    return Transition(id=delivery.pk, status=ending.status, reason=ending.reason, due_at=None)


def _event(delivery: Delivery) -> EventRow:
    return EventRow(
        delivery.organization_id,
        delivery.message_id,
        delivery.pk,
        _ENDINGS[Status(delivery.status)].event,
        clock.now(),
        channel=delivery.channel,
        test=delivery.test,
    )
