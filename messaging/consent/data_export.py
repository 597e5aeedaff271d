"""Data export: everything that is stored about a person (GDPR Art. 15 and 20).

SQL, because rows are exported as they are stored, column by column (`to_jsonb`): a new column is
included without a change here. Not included are the tokens of devices, which are credentials, and
data about other people.
"""

from collections.abc import Iterable
from operator import attrgetter
from typing import Any

import orjson
from django.contrib.admin.models import LogEntry
from django.db import connection, models

from messaging.archive import reading as archive
from messaging.archive.records import ArchivedMessage
from messaging.models import (
    Attempt,
    ConsentEntry,
    Delivery,
    Event,
    Message,
    MessageContent,
    PrivacyRequest,
    Suppression,
    WebhookDelivery,
    WebhookEndpoint,
    delivery_lookup,
    derived_events,
)
from push.models import Device
from rme.core.db import clock
from rme.core.db.clock import iso
from rme.crm.models import Case, CaseComment, Contact, EventRegistration, Exhibitor, Speaker
from rme.tenants.models import AuditEntry, AuditValues

_MESSAGE, _CONTENT, _DELIVERY, _ATTEMPT = (
    model._meta.db_table for model in (Message, MessageContent, Delivery, Attempt)
)
_EVENTS = derived_events.select(
    "stored.message_id = t.message_id AND stored.delivery_id = t.id",
    "accepted.id = t.id",
    "sent.delivery_id = t.id",
)
_WEBHOOK, _ENDPOINT = WebhookDelivery._meta.db_table, WebhookEndpoint._meta.db_table
_CONTACT = Contact._meta.db_table
_ORGANIZATION = "organization_id"
_OWN = "t.organization_id = %(organization)s AND t.contact_id::text = %(contact)s"
_OWN_DELIVERIES = (
    f"t.organization_id = %(organization)s AND {delivery_lookup.is_to_contact('t', '%(contact)s')}"
)

# as `Attempt.full_provider_id`
_PROVIDER_ID = """CASE WHEN starts_with(x.provider_id, '@@') THEN substr(x.provider_id, 2)
    WHEN starts_with(x.provider_id, '@') THEN x.delivery_id || x.provider_id
    ELSE x.provider_id END"""
_MESSAGES = f"""
SELECT to_jsonb(m) - 'organization_id' || jsonb_build_object(
  'delivery', to_jsonb(t) - 'organization_id',
  'content', CASE WHEN c.body ? 'recipients' THEN jsonb_set(c.body, '{{recipients}}',
      jsonb_strip_nulls(jsonb_build_object(t.id, c.body #> ARRAY['recipients', t.id::text])))
    ELSE c.body END,
  'attempts', (SELECT coalesce(jsonb_agg(to_jsonb(x) - 'organization_id' || jsonb_build_object(
      'message_id', t.message_id, 'provider_id', {_PROVIDER_ID}) ORDER BY x.id), '[]')
    FROM {_ATTEMPT} x WHERE x.delivery_id = t.id),
  'events', (SELECT coalesce(jsonb_agg(to_jsonb(x) - 'organization_id' ORDER BY x.id), '[]')
    FROM {_EVENTS} x),
  'notices', (SELECT coalesce(jsonb_agg(to_jsonb(n) - 'organization_id' ORDER BY n.id), '[]')
    FROM {_EVENTS} x JOIN {_ENDPOINT} w ON w.organization_id = t.organization_id
    JOIN {_WEBHOOK} n ON n.endpoint_id = w.id AND n.event_id = x.id))
FROM {_DELIVERY} t JOIN {_MESSAGE} m ON m.id = t.message_id
LEFT JOIN {_CONTENT} c ON c.id = t.message_id
WHERE {_OWN_DELIVERIES} ORDER BY t.message_id
"""

_ADDRESSES = f"""
SELECT lower(email) FROM {_CONTACT} WHERE organization_id = %(organization)s
  AND id::text = %(contact)s
UNION SELECT mobile FROM {_CONTACT} WHERE organization_id = %(organization)s
  AND id::text = %(contact)s
UNION SELECT address FROM {_DELIVERY} t WHERE {_OWN_DELIVERIES}
UNION SELECT unnest(%(archived)s::text[])
"""


def _select(table: str, where: str = _OWN, excluded: str = "{}") -> str:
    return (
        f"SELECT to_jsonb(t) - 'organization_id' - '{excluded}'::text[] FROM {table} t "
        f"WHERE {where} ORDER BY t.id"
    )


_PARTS = {
    "contact": _select(
        _CONTACT, "t.organization_id = %(organization)s AND t.id::text = %(contact)s"
    ),
    "cases": f"""SELECT to_jsonb(t) - 'organization_id' || jsonb_build_object('comments',
      (SELECT coalesce(jsonb_agg(x.text ORDER BY x.id), '[]')
       FROM {CaseComment._meta.db_table} x WHERE x.case_id = t.id))
      FROM {Case._meta.db_table} t WHERE {_OWN} ORDER BY t.id""",
    "registrations": _select(EventRegistration._meta.db_table),
    "speakers": _select(Speaker._meta.db_table),
    "exhibitors": _select(Exhibitor._meta.db_table),
    "devices": _select(Device._meta.db_table, excluded="{token,token_digest}"),
    "consent": _select(ConsentEntry._meta.db_table),
    "suppressions": _select(
        Suppression._meta.db_table,
        "t.organization_id = %(organization)s AND (t.contact_id = %(contact)s "
        f"OR t.address <> '' AND t.address IN ({_ADDRESSES}))",
    ),
    "requests": _select(PrivacyRequest._meta.db_table, excluded="{actor,recorded_by}"),
    # what was done with the person's data, without who did it
    "audit": f"""SELECT jsonb_build_object('id', e.id, 'at', e.at, 'action', e.action,
      'kind', e.kind, 'object_id', e.object_id, 'label', t.label, 'text', t.text,
      'changes', t.changes, 'reason', t.reason)
      FROM {AuditValues._meta.db_table} t JOIN {AuditEntry._meta.db_table} e ON e.id = t.entry_id
      WHERE t.organization_id = %(organization)s AND t.contact_id = %(contact)s
        AND t.contact_id <> '' ORDER BY e.id""",
    "changes": f"SELECT to_jsonb(t) - 'user_id' FROM {LogEntry._meta.db_table} t "
    "JOIN django_content_type k ON k.id = t.content_type_id "
    f"JOIN {_CONTACT} own ON own.id::text = t.object_id "
    "WHERE k.app_label = 'crm' AND k.model = 'contact' AND t.object_id = %(contact)s "
    "AND own.organization_id = %(organization)s ORDER BY t.id",
}


def _parsed(row: tuple[str]) -> Any:
    return orjson.loads(row[0])


def _addresses(messages: Iterable[dict[str, Any]]) -> list[str]:
    """Return the addresses to which messages went."""
    return sorted({each["delivery"]["address"] for each in messages} - {None})


def _archived(archived: ArchivedMessage, contact_id: str) -> dict[str, Any]:
    """Return an archived message as `_MESSAGES` returns one of PostgreSQL."""
    own = next(row for row in archived.deliveries if row.contact_id == contact_id)
    return {
        **_columns(archived.message),
        "delivery": _columns(own),
        "content": None,
        "attempts": [
            {
                **_columns(row),
                "message_id": str(own.message_id),
                "provider_id": row.full_provider_id,
            }
            for row in archived.attempts
            if row.delivery_id == own.pk
        ],
        "events": [
            _columns(row)
            for row in sorted(_events(archived), key=attrgetter("pk"))
            if row.delivery_id == own.pk
        ],
        "notices": [],
    }


def _events(archived: ArchivedMessage) -> list[Event]:
    return derived_events.of_rows(archived.deliveries, archived.attempts, archived.events)


def _columns(row: models.Model) -> dict[str, Any]:
    names = [each.attname for each in row._meta.concrete_fields if each.attname != _ORGANIZATION]
    columns: dict[str, Any] = orjson.loads(
        orjson.dumps({name: row.__dict__[name] for name in names})
    )
    return columns


def export_contact(organization_id: str, contact_id: str) -> dict[str, object] | None:
    """Return everything that is stored about a person of one organization, None if nothing is.

    One statement for each kind of record, and what the archive needs, which comes last: a message
    that is moved meanwhile is then found twice, and taken once.
    """
    values: dict[str, str | list[str]] = {"organization": organization_id, "contact": contact_id}
    found: dict[str, list[Any]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_MESSAGES, values)
        messages = {each["id"]: each for each in map(_parsed, cursor.fetchall())}
    for each in archive.of_contact(organization_id, contact_id):
        messages.setdefault(str(each.message.pk), _archived(each, contact_id))
    values["archived"] = _addresses(messages.values())
    with connection.cursor() as cursor:
        for name, statement in _PARTS.items():
            cursor.execute(statement, values)
            found[name] = [_parsed(row) for row in cursor.fetchall()]
    found["messages"] = [messages[key] for key in sorted(messages)]
    if not any(found.values()):
        return None
    return {
        "organization": organization_id,
        "contactId": contact_id,
        "exportedAt": iso(clock.now()),
        **found,
        "contact": next(iter(found["contact"]), None),
    }


def export_address(organization_id: str, address: str) -> dict[str, object] | None:
    """Return what is stored about the address of a person who is no contact, None if nothing is.

    All but suppressions is stored by contact.
    """
    where = "t.organization_id = %(organization)s AND t.address = %(address)s AND t.address <> ''"
    with connection.cursor() as cursor:
        statement = _select(Suppression._meta.db_table, where)
        cursor.execute(statement, {"organization": organization_id, "address": address})
        found = [_parsed(row) for row in cursor.fetchall()]
    if not found:
        return None
    return {
        "organization": organization_id,
        "address": address,
        "exportedAt": iso(clock.now()),
        "suppressions": found,
    }
