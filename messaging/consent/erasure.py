"""Erasure of a person (GDPR Art. 17).

What stays does not describe the person: that a message was sent, when, by which provider and with
which outcome, under a contact id that no longer leads anywhere. So statistics stay correct and
bills can be checked. Suppressed addresses stay too, so that an old list that is imported again does
not make the person a recipient.

SQL, because each statement changes rows of several partitioned tables by a join, and JSON within
them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection, models, transaction
from django.db.models.functions import Now

from messaging.archive import erasures as archive
from messaging.consent import gate_lock, ledger
from messaging.models import (
    Attempt,
    BulkAction,
    ConsentEntry,
    Delivery,
    Event,
    Message,
    MessageContent,
    PrivacyFile,
    PrivacyRequest,
    Suppression,
    WebhookDelivery,
    WebhookEndpoint,
    delivery_lookup,
    derived_events,
)
from messaging.models.statuses import EventType, Status, StatusReason
from messaging.models.transitions import Transition, apply_transitions
from messaging.webhooks.events import EventRow, write_events
from push.models import Device
from rme.core import ids
from rme.core.db import clock
from rme.crm.models import Case, CaseComment, Contact, EventRegistration
from rme.tenants import audit
from rme.tenants.audit import Action, Actor

ERASED = "(erased)"
"""The value of a text that cannot be empty."""

_DELIVERIES = f"""SELECT d.id, d.message_id FROM {Delivery._meta.db_table} d
  WHERE d.organization_id = %(organization)s
  AND {delivery_lookup.is_to_contact("d", "%(contact)s")} AND d.status <> 'SENDING'"""
_SOLE_DELIVERIES = f"""{_DELIVERIES} AND NOT EXISTS (SELECT FROM {Delivery._meta.db_table} other
  WHERE {delivery_lookup.is_of_message("other", "d.message_id")}
  AND other.contact_id <> d.contact_id)"""

_EVENTS = derived_events.select(
    "stored.message_id = own.message_id AND stored.delivery_id = own.id",
    "accepted.id = own.id",
    "sent.delivery_id = own.id",
)

_ERASE = {
    # messages to this person alone: everything
    "contents": f"""UPDATE {MessageContent._meta.db_table} c SET body = '{{}}'
      FROM ({_SOLE_DELIVERIES}) own WHERE c.id = own.message_id AND c.body <> '{{}}'""",
    "metadata": f"""UPDATE {Message._meta.db_table} m SET metadata = NULL
      FROM ({_SOLE_DELIVERIES}) own WHERE m.id = own.message_id AND m.metadata IS NOT NULL""",
    # messages to several: this person's variables
    "variables": f"""UPDATE {MessageContent._meta.db_table} c
      SET body = c.body #- ARRAY['recipients', own.id::text]
      FROM ({_DELIVERIES}) own WHERE c.id = own.message_id
      AND c.body #> ARRAY['recipients', own.id::text] IS NOT NULL""",
    "attempts": f"""UPDATE {Attempt._meta.db_table} a SET reason = NULL
      FROM ({_DELIVERIES}) own WHERE a.delivery_id = own.id AND a.reason IS NOT NULL""",
    "events": f"""UPDATE {Event._meta.db_table} e SET detail = NULL
      FROM ({_DELIVERIES}) own WHERE e.message_id = own.message_id AND e.delivery_id = own.id
      AND e.detail IS NOT NULL""",
    # webhook deliveries, done and waiting: the payloads and the answers may name the person
    "notices": f"""DELETE FROM {WebhookDelivery._meta.db_table} n
      USING ({_DELIVERIES}) own, LATERAL {_EVENTS} e, {WebhookEndpoint._meta.db_table} w
      WHERE w.organization_id = %(organization)s AND n.endpoint_id = w.id AND n.event_id = e.id""",
    # and those of the person's consent, suppressions and devices
    "changes": f"""DELETE FROM {WebhookDelivery._meta.db_table} n
      USING {WebhookEndpoint._meta.db_table} w
      WHERE w.organization_id = %(organization)s AND n.endpoint_id = w.id
      AND n.data IS NOT NULL AND n.data ->> 'contactId' = %(contact)s""",
    # without `due_at` a sent delivery does not fall back to another channel
    "deliveries": f"""UPDATE {Delivery._meta.db_table} t
      SET address = NULL, detail = NULL, trace = NULL, due_at = NULL
      FROM ({_DELIVERIES}) own WHERE t.id = own.id AND NOT (t.address IS NULL AND t.detail IS NULL
        AND t.trace IS NULL AND t.due_at IS NULL)""",
}
"""Statements that erase message data, by the name of the count that they report.

A content is emptied and not deleted, since claims join it.
"""


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
    own: dict[str, Any] = {"organization_id": organization_id, "contact_id": contact_id}
    deliveries = Delivery.objects.filter(
        delivery_lookup.of_contact(contact_id), organization_id=organization_id
    )
    with transaction.atomic():
        archive.hold(organization_id)  # nothing is moved to the archive meanwhile
        gate_lock.take_exclusive([organization_id])  # before any row: see its order
        counts = {
            **_erase_platform(organization_id, contact_id),
            "devices": _delete(Device.objects.filter(**own)),
            "suppressions": _delete(Suppression.objects.filter(**own)),
            "consent": ledger.erase(organization_id, contact_id),
            "stopped": _stop(deliveries),
            **_erase_messages(organization_id, contact_id),
            "actions": BulkAction.objects.filter(**own)
            .exclude(scope=ERASED)
            .update(scope=ERASED, reason=ERASED),
            "requests": _erase_requests(own),
            "audit": audit.erase(organization_id, contact_id),
        }
        if files := archive.request(organization_id, contact_id):
            counts["archive files"] = files
        _record(actor, organization_id, contact_id, counts)
        under_way = deliveries.filter(status=Status.SENDING).count()
    return Erased(counts, under_way)


def _erase_requests(own: Mapping[str, Any]) -> int:
    """Delete the files of the person's exports, and the texts of the requests."""
    requests = PrivacyRequest.objects.filter(**own)
    # First, so that this waits for an export that is storing its file.
    requests.filter(kind=PrivacyRequest.Kind.EXPORT, state="RUNNING").update(erased_at=Now())
    PrivacyFile.objects.filter(request__in=requests).delete()
    return requests.exclude(note="", reason="").update(note="", reason="")


def preview(organization_id: str, contact_id: str) -> dict[str, int]:
    """Return what an erasure would find, by the names of its counts; five queries."""
    own: dict[str, Any] = {"organization_id": organization_id, "contact_id": contact_id}
    deliveries = Delivery.objects.filter(**own)
    return {
        "stopped": deliveries.filter(status__in=list(_ENDINGS)).count(),
        "deliveries": deliveries.count(),
        "consent": ConsentEntry.objects.filter(**own).count(),
        "suppressions": Suppression.objects.filter(**own).count(),
        "devices": Device.objects.filter(**own).count(),
    }


def _record(actor: Actor, organization_id: str, contact_id: str, counts: Mapping[str, int]) -> None:
    """Record an erasure that found something; the entry has no personal data."""
    found = ", ".join(f"{name}: {count}" for name, count in counts.items() if count)
    if found:
        kind = Contact._meta.label_lower
        entry = audit.NewEntry(Action.ERASED, organization_id, kind, contact_id, text=found)
        audit.record(actor, [entry])


def _erase_platform(organization_id: str, contact_id: str) -> dict[str, int]:
    """Erase the person's records in the embedded platform; another platform erases its own."""
    key = ids.parse(contact_id) or UUID(int=0)  # no record has this id
    own: dict[str, Any] = {"organization_id": organization_id, "contact_id": key}
    registrations = EventRegistration.objects.filter(**own).exclude(name=ERASED)
    if not Contact.objects.filter(pk=key).exclude(organization_id=organization_id).exists():
        _erase_log(Contact, [contact_id])  # also of a contact that was deleted in the admin
    return {
        "cases": _erase_cases(Case.objects.filter(**own).exclude(issue=ERASED)),
        "registrations": registrations.update(name=ERASED, email=""),
        "contacts": _delete(Contact.objects.filter(organization_id=organization_id, pk=key)),
    }


def _erase_cases(cases: models.QuerySet[Case]) -> int:
    """Erase the texts, comments and change log of cases; the cases themselves stay."""
    found = list(cases.values_list("pk", flat=True))
    _erase_log(Case, [str(key) for key in found])
    CaseComment.objects.filter(case_id__in=found).delete()
    return Case.objects.filter(pk__in=found).update(subject=ERASED, issue=ERASED)


def _delete(rows: models.QuerySet[Any]) -> int:
    """Delete rows, and erase their entries in the log of former releases, which hold values."""
    found: list[UUID] = list(rows.values_list("pk", flat=True))
    _erase_log(rows.model, [str(key) for key in found])
    rows.delete()
    return len(found)


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
    waiting = deliveries.select_for_update().filter(status__in=list(_ENDINGS)).order_by("pk")
    found = {row.pk: row for row in waiting}
    stopped = apply_transitions([_stopped(row) for row in found.values()])
    write_events([_event(found[identifier]) for identifier in stopped])
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
    )


def _erase_messages(organization_id: str, contact_id: str) -> dict[str, int]:
    counts = {}
    with connection.cursor() as cursor:
        for name, statement in _ERASE.items():
            cursor.execute(statement, {"organization": organization_id, "contact": contact_id})
            counts[name] = cursor.rowcount
    return counts
