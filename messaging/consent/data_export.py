"""Data export: everything that is stored about a person (GDPR Art. 15 and 20).

Rows are exported with all their columns: a new column is included without a change here.
Credentials aren't included (the tokens of devices, and the links in stored contents), nor is data
about other people.
"""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from django.contrib.admin.models import LogEntry
from django.db.models import Model, Q, QuerySet

from messaging import links
from messaging.models import (
    AddressOptOut,
    ConsentEntry,
    ConsentEntryInTest,
    PrivacyRequest,
    Suppression,
    SuppressionInTest,
)
from messaging.store.archived import archive
from messaging.store.people import export
from push.models import Device
from rme.core import addresses, ids
from rme.core.db import clock
from rme.core.db.clock import iso
from rme.crm.models import Case, CaseComment, Contact, EventRegistration, Exhibitor, Speaker
from rme.tenants.models import AuditEntry, AuditValues

Section = list[dict[str, Any]]


def export_contact(organization_id: str, contact_id: str) -> dict[str, object] | None:
    """Return everything that is stored about a person of one organization, None if nothing is.

    One statement for each kind of record, and what the archive needs, which comes last: a message
    that is moved meanwhile is then found twice, and taken once.
    """
    messages = {
        record["id"]: record
        for record in map(_as_preview, export.messages(organization_id, contact_id))
    }
    for archived in archive().of_contact(organization_id, contact_id):
        record = export.of_rows(
            archived.message, archived.deliveries, archived.attempts, archived.events, contact_id
        )
        messages.setdefault(record["id"], record)
    in_platform = _platform_sections(organization_id, contact_id)
    owner: dict[str, Any] = {"organization_id": organization_id}
    person = {**owner, "contact_id": contact_id}
    their_addresses = _addresses(messages.values(), in_platform["contact"])
    suppressed = Q(contact_id=contact_id) | Q(address__in=their_addresses)
    sections: dict[str, Section] = {
        **in_platform,
        "devices": _rows(Device.objects.filter(**person), "token", "token_digest"),
        "consent": _rows(ConsentEntry.objects.filter(**person)),
        "suppressions": _rows(Suppression.objects.filter(suppressed, **owner)),
        "addressOptOuts": _rows(AddressOptOut.objects.filter(address__in=their_addresses, **owner)),
        "testConsent": _rows(ConsentEntryInTest.objects.filter(**person)),
        "testSuppressions": _rows(SuppressionInTest.objects.filter(suppressed, **owner)),
        "requests": _rows(PrivacyRequest.objects.filter(**person), "actor", "recorded_by"),
        "audit": _audit(person),
        "messages": [messages[key] for key in sorted(messages)],
    }
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
    spellings = _spellings([address])
    of_address: dict[str, Any] = {"organization_id": organization_id, "address__in": spellings}
    sections = {
        "suppressions": _rows(Suppression.objects.filter(**of_address)),
        "addressOptOuts": _rows(AddressOptOut.objects.filter(**of_address)),
    }
    if not any(sections.values()):
        return None
    return {
        "organization": organization_id,
        "address": address,
        "exportedAt": iso(clock.now()),
        **sections,
    }


def _platform_sections(organization_id: str, contact_id: str) -> dict[str, Section]:
    """Return the person's records in the embedded platform; another platform exports its own."""
    key = ids.parse(contact_id) or UUID(int=0)  # no record has this id
    person: dict[str, Any] = {"organization_id": organization_id, "contact_id": key}
    contact = _rows(Contact.objects.filter(organization_id=organization_id, pk=key))
    cases = _rows(Case.objects.filter(**person))
    comments = CaseComment.objects.filter(case_id__in=[case["id"] for case in cases])
    texts = list(comments.order_by("pk").values_list("case_id", "text"))
    for case in cases:
        own_texts = (text for case_id, text in texts if str(case_id) == case["id"])
        case["comments"] = list(map(links.preview_links, own_texts))
    log = LogEntry.objects.filter(
        content_type__app_label="crm", content_type__model="contact", object_id=contact_id
    )
    return {
        "contact": contact,
        "cases": cases,
        "registrations": _rows(EventRegistration.objects.filter(**person)),
        "speakers": _rows(Speaker.objects.filter(**person)),
        "exhibitors": _rows(Exhibitor.objects.filter(**person)),
        "changes": _rows(log, "user_id") if contact else [],
    }


def _audit(person: dict[str, Any]) -> Section:
    """Return what was done with the person's data, without who did it."""
    names = ("label", "text", "changes", "reason")
    values = AuditValues.objects.filter(**person).values_list("entry_id", *names)
    values_by_entry = {key: dict(zip(names, row, strict=True)) for key, *row in values}
    entries = AuditEntry.objects.filter(pk__in=values_by_entry).order_by("pk")
    return [
        _as_preview(_as_json({**entry, **values_by_entry[entry["id"]]}))
        for entry in entries.values("id", "at", "action", "kind", "object_id")
    ]


def _rows(rows: QuerySet[Model], *excluded: str) -> Section:
    """Return rows with all their columns but the organization and those that are excluded."""
    columns = [
        column.attname
        for column in rows.model._meta.concrete_fields
        if column.attname not in ("organization_id", *excluded)
    ]
    return [_as_preview(_as_json(row)) for row in rows.order_by("pk").values(*columns)]


def _as_json(row: dict[str, Any]) -> str:
    """Return columns as JSON; orjson takes no integers beyond 64 bits, which JSON columns have."""
    return json.dumps(row, default=lambda v: v.isoformat() if isinstance(v, datetime) else str(v))


def _as_preview(record: str) -> Any:
    return orjson.loads(links.preview_links(record))


def _addresses(messages: Iterable[dict[str, Any]], contact: Section) -> list[str]:
    """Return the addresses of messages and of a contact, in all spellings of the lists."""
    texts = {record["delivery"]["address"] for record in messages}
    return _spellings({*texts, *(row[name] for row in contact for name in ("email", "mobile"))})


def _spellings(texts: Iterable[str | None]) -> list[str]:
    """Return addresses as suppression lists may have them."""
    spelled = {each for text in texts if text for each in (text, addresses.email(text)) if each}
    return sorted({spelling for each in spelled for spelling in addresses.phone_spellings(each)})
