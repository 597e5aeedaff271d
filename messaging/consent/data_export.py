"""Data export: everything that is stored about a person (GDPR Art. 15 and 20).

SQL, because rows are exported as they are stored, column by column (`to_jsonb`): a new column is
included without a change here. Credentials aren't included (the tokens of devices, and the links in
stored contents), nor is data about other people.
"""

from collections.abc import Iterable
from typing import Any

import orjson
from django.contrib.admin.models import LogEntry
from django.db import connection

from messaging import links
from messaging.archive import reading as archive
from messaging.models import (
    AddressOptOut,
    ConsentEntry,
    ConsentEntryInTest,
    Delivery,
    PrivacyRequest,
    Suppression,
    SuppressionInTest,
)
from messaging.store.people import export
from push.models import Device
from rme.core import addresses
from rme.core.db import clock
from rme.core.db.clock import iso
from rme.crm.models import Case, CaseComment, Contact, EventRegistration, Exhibitor, Speaker
from rme.tenants.models import AuditEntry, AuditValues

_DELIVERY = Delivery._meta.db_table
_CONTACT = Contact._meta.db_table
_OWN = "t.organization_id = %(organization)s AND t.contact_id::text = %(contact)s"
_OWN_DELIVERIES = export.DELIVERIES_OF_CONTACT

_ADDRESSES = f"""
SELECT email FROM {_CONTACT} WHERE organization_id = %(organization)s
  AND id::text = %(contact)s
UNION SELECT mobile FROM {_CONTACT} WHERE organization_id = %(organization)s
  AND id::text = %(contact)s
UNION SELECT address FROM {_DELIVERY} t WHERE {_OWN_DELIVERIES}
"""


def _select(table: str, condition: str = _OWN, excluded: str = "{}") -> str:
    return (
        f"SELECT to_jsonb(t) - 'organization_id' - '{excluded}'::text[] FROM {table} t "
        f"WHERE {condition} ORDER BY t.id"
    )


_ITS_ADDRESSES = "t.organization_id = %(organization)s AND t.address = ANY(%(addresses)s::text[])"
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
        "OR t.address <> '' AND t.address = ANY(%(addresses)s::text[]))",
    ),
    "addressOptOuts": _select(AddressOptOut._meta.db_table, _ITS_ADDRESSES),
    "testConsent": _select(ConsentEntryInTest._meta.db_table),
    "testSuppressions": _select(
        SuppressionInTest._meta.db_table,
        "t.organization_id = %(organization)s AND (t.contact_id = %(contact)s "
        "OR t.address <> '' AND t.address = ANY(%(addresses)s::text[]))",
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
    return orjson.loads(links.preview_links(row[0]))


def _addresses(
    messages: Iterable[dict[str, Any]], contact_addresses: Iterable[str | None]
) -> list[str]:
    """Return the addresses of messages and of a contact, in all spellings of the lists."""
    stored_addresses = {each["delivery"]["address"] for each in messages} | set(contact_addresses)
    spelled = [
        each for text in stored_addresses if text for each in (text, addresses.email(text)) if each
    ]
    return sorted({spelling for each in spelled for spelling in addresses.phone_spellings(each)})


def export_contact(organization_id: str, contact_id: str) -> dict[str, object] | None:
    """Return everything that is stored about a person of one organization, None if nothing is.

    One statement for each kind of record, and what the archive needs, which comes last: a message
    that is moved meanwhile is then found twice, and taken once.
    """
    values: dict[str, str | list[str]] = {"organization": organization_id, "contact": contact_id}
    sections: dict[str, list[Any]] = {}
    with connection.cursor() as cursor:
        cursor.execute(export.MESSAGES, values)
        messages = {record["id"]: record for record in map(_parsed, cursor.fetchall())}
    for record in archive.of_contact(organization_id, contact_id):
        archived = export.of_rows(
            record.message, record.deliveries, record.attempts, record.events, contact_id
        )
        messages.setdefault(str(record.message.pk), archived)
    with connection.cursor() as cursor:
        cursor.execute(_ADDRESSES, values)
        contact_addresses = [address for (address,) in cursor.fetchall()]
        values["addresses"] = _addresses(messages.values(), contact_addresses)
        for name, statement in _PARTS.items():
            cursor.execute(statement, values)
            sections[name] = [_parsed(row) for row in cursor.fetchall()]
    sections["messages"] = [messages[key] for key in sorted(messages)]
    if not any(sections.values()):
        return None
    return {
        "organization": organization_id,
        "contactId": contact_id,
        "exportedAt": iso(clock.now()),
        **sections,
        "contact": next(iter(sections["contact"]), None),
    }


def export_address(organization_id: str, address: str) -> dict[str, object] | None:
    """Return the stored data of an address that isn't a contact's, or None.

    These are suppressions and opt-outs of addresses: all other data is stored by contact.
    """
    spellings = list(addresses.phone_spellings(address))
    values: dict[str, str | list[str]] = {"organization": organization_id, "addresses": spellings}
    models = {"suppressions": Suppression, "addressOptOuts": AddressOptOut}
    sections: dict[str, list[Any]] = {}
    with connection.cursor() as cursor:
        for name, model in models.items():
            condition = f"{_ITS_ADDRESSES} AND t.address <> ''"
            cursor.execute(_select(model._meta.db_table, condition), values)
            sections[name] = [_parsed(row) for row in cursor.fetchall()]
    if not any(sections.values()):
        return None
    return {
        "organization": organization_id,
        "address": address,
        "exportedAt": iso(clock.now()),
        **sections,
    }
