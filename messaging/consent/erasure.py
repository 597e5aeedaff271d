"""Erasing a person (GDPR Art. 17).

What stays says nothing about them: that a message was sent, when, by which provider and what came
of it, under the contact's id, which then leads nowhere. So figures stay right and bills can be
checked. Suppressed addresses stay too: they keep the person from being written to again when an
old list is imported.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection, models, transaction

from messaging.consent import ledger
from messaging.models import (
    Attempt,
    Delivery,
    Event,
    Message,
    MessageContent,
    Suppression,
    WebhookDelivery,
    WebhookEndpoint,
)
from messaging.models.statuses import TRANSITIONS, EventType, Status
from messaging.webhooks.events import write_events
from push.models import Device
from rme.core import ids
from rme.core.db import clock, sql
from rme.core.db.transitions import advance
from rme.crm.models import Case, CaseComment, Contact, EventRegistration

GONE = "(erased)"
"""What stands where a text must."""

_OWN = f"""SELECT d.id, d.message_id FROM {Delivery._meta.db_table} d
  WHERE d.organization_id = %(organization)s AND d.contact_id = %(contact)s
  AND d.status <> 'SENDING'"""
_ALONE = f"""{_OWN} AND NOT EXISTS (SELECT FROM {Delivery._meta.db_table} other
  WHERE other.message_id = d.message_id AND other.contact_id <> d.contact_id)"""

_ERASE = {
    # of messages to nobody else: all that was given
    "contents": f"""UPDATE {MessageContent._meta.db_table} c SET body = '{{}}'
      FROM ({_ALONE}) own WHERE c.id = own.message_id AND c.body <> '{{}}'""",
    "metadata": f"""UPDATE {Message._meta.db_table} m SET metadata = NULL
      FROM ({_ALONE}) own WHERE m.id = own.message_id AND m.metadata IS NOT NULL""",
    # of messages to several: what was given for this person
    "variables": f"""UPDATE {MessageContent._meta.db_table} c
      SET body = c.body #- ARRAY['recipients', own.id::text]
      FROM ({_OWN}) own WHERE c.id = own.message_id
      AND c.body #> ARRAY['recipients', own.id::text] IS NOT NULL""",
    "attempts": f"""UPDATE {Attempt._meta.db_table} a SET reason = NULL
      FROM ({_OWN}) own WHERE a.delivery_id = own.id AND a.reason IS NOT NULL""",
    "events": f"""UPDATE {Event._meta.db_table} e SET detail = NULL
      FROM ({_OWN}) own WHERE e.message_id = own.message_id AND e.delivery_id = own.id
      AND e.detail IS NOT NULL""",
    # what endpoints were told, whose answers may name the person, and what they would be told
    "notices": f"""DELETE FROM {WebhookDelivery._meta.db_table} n
      USING ({_OWN}) own, {Event._meta.db_table} e, {WebhookEndpoint._meta.db_table} w
      WHERE e.message_id = own.message_id AND e.delivery_id = own.id
      AND w.organization_id = %(organization)s AND n.endpoint_id = w.id AND n.event_id = e.id""",
    # without `due_at` a sent one does not fall back to another channel
    "deliveries": f"""UPDATE {Delivery._meta.db_table} t
      SET address = NULL, detail = NULL, trace = NULL, due_at = NULL
      FROM ({_OWN}) own WHERE t.id = own.id AND NOT (t.address IS NULL AND t.detail IS NULL
        AND t.trace IS NULL AND t.due_at IS NULL)""",
}
"""What goes of the messages, by the name of its count. A content is emptied and not deleted: what
is claimed is read together with it.
"""


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased. `under_way`: deliveries that a worker has in hand, left for another run."""

    counts: Mapping[str, int]
    under_way: int


def erase(organization_id: str, contact_id: str) -> Erased:
    """Erase a person of one organization, all or nothing. Again is no error and finds nothing.

    What has not been sent yet is stopped. The number of statements does not depend on how much
    there is.
    """
    own: dict[str, Any] = {"organization_id": organization_id, "contact_id": contact_id}
    with transaction.atomic():
        counts = {
            **_erase_platform(organization_id, contact_id),
            "devices": _delete(Device.objects.filter(**own)),
            "suppressions": _delete(Suppression.objects.filter(**own)),
            "consent": ledger.erase(organization_id, contact_id),
            "stopped": _stop(own),
            **_erase_messages(organization_id, contact_id),
        }
        under_way = Delivery.objects.filter(**own, status=Status.SENDING).count()
    return Erased(counts, under_way)


def _erase_platform(organization_id: str, contact_id: str) -> dict[str, int]:
    """Erase the person's records in the embedded platform; another platform erases its own."""
    key = ids.parse(contact_id) or UUID(int=0)  # which nobody has
    own: dict[str, Any] = {"organization_id": organization_id, "contact_id": key}
    registrations = EventRegistration.objects.filter(**own).exclude(name=GONE)
    if not Contact.objects.filter(pk=key).exclude(organization_id=organization_id).exists():
        _forget(Contact, [contact_id])  # also of one that was deleted in the admin before
    return {
        "cases": _erase_cases(Case.objects.filter(**own).exclude(issue=GONE)),
        "registrations": registrations.update(name=GONE, email=""),
        "contacts": _delete(Contact.objects.filter(organization_id=organization_id, pk=key)),
    }


def _erase_cases(cases: models.QuerySet[Case]) -> int:
    """Keep that there were cases: their texts, comments and changes go."""
    found = list(cases.values_list("pk", flat=True))
    _forget(Case, [str(key) for key in found])
    CaseComment.objects.filter(case_id__in=found).delete()
    return Case.objects.filter(pk__in=found).update(subject=GONE, issue=GONE)


def _delete(rows: models.QuerySet[Any]) -> int:
    """Delete rows, and what the admin's log says of them: it holds their values."""
    found: list[UUID] = list(rows.values_list("pk", flat=True))
    _forget(rows.model, [str(key) for key in found])
    rows.delete()
    return len(found)


def _forget(model: type[models.Model], keys: Collection[str]) -> None:
    LogEntry.objects.filter(
        content_type=ContentType.objects.get_for_model(model), object_id__in=keys
    ).update(object_repr=GONE, change_message="")


_ENDS = {
    Status.SCHEDULED: (Status.CANCELLED, None, EventType.CANCELLED),
    Status.ACCEPTED: (Status.BLOCKED, "UNREACHABLE", EventType.BLOCKED),
    Status.UNKNOWN: (Status.FAILED, "PROVIDER_ERROR", EventType.FAILED),
}
"""How what is not sent for good yet ends: status, reason, event."""


def _stop(own: Mapping[str, Any]) -> int:
    """End what is still to be sent; give how many that were."""
    waiting = Delivery.objects.select_for_update().filter(**own, status__in=list(_ENDS))
    found = {row.pk: row for row in waiting}
    rows: list[sql.Row] = []
    for row in found.values():
        status, reason, _ = _ENDS[Status(row.status)]
        rows.append({"id": row.pk, "status": status, "reason": reason, "due_at": None})
    moved = advance(Delivery, TRANSITIONS, rows)
    write_events([_event(found[identifier]) for identifier in moved])
    return len(moved)


def _event(delivery: Delivery) -> sql.Row:
    return {
        "id": ids.new_id(),
        "organization_id": delivery.organization_id,
        "message_id": delivery.message_id,
        "delivery_id": delivery.pk,
        "type": _ENDS[Status(delivery.status)][2],
        "at": clock.now(),
        "channel": delivery.channel,
    }


def _erase_messages(organization_id: str, contact_id: str) -> dict[str, int]:
    counts = {}
    with connection.cursor() as cursor:
        for name, statement in _ERASE.items():
            cursor.execute(statement, {"organization": organization_id, "contact": contact_id})
            counts[name] = cursor.rowcount
    return counts
