"""The embedded platform: records in our own tables."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
from django.db import connection

from rme.core import addresses, ids
from rme.core.db import prepared_statements, sql
from rme.crm import folding
from rme.crm.connectors.base import NO_DEADLINE, Connector, Deadline
from rme.crm.connectors.embedded import creates
from rme.crm.connectors.embedded import lookups as finds
from rme.crm.connectors.embedded.records import RECORDS
from rme.crm.connectors.records import (
    AccountRecord,
    CaseRecord,
    ContactRecord,
    ExhibitorRecord,
    New,
    Record,
    RegistrationRecord,
    SpeakerRecord,
)
from rme.crm.models import Contact

# SQL text, because every accept runs it: the ORM takes as long to build the statement as
# PostgreSQL takes to run it.
_FIELDS = "id::text, first_name, last_name, email, mobile, language, zone"
_CONTACTS = f"""
SELECT {_FIELDS} FROM {Contact._meta.db_table} WHERE organization_id = %s AND id = ANY(%s::uuid[])
"""
# LATERAL with OFFSET looks each contact up by its id, whatever the statistics say; the expression
# keeps the planner from the index on organizations, which finds all contacts of one.
_CONTACTS_OF_MANY = f"""
SELECT wanted.organization_id, c.*
FROM unnest(%s::text[], %s::uuid[]) wanted(organization_id, contact_id), LATERAL (
  SELECT {_FIELDS} FROM {Contact._meta.db_table}
  WHERE {sql.by_key("id", "wanted.contact_id")} AND organization_id || '' = wanted.organization_id
  OFFSET 0) c
"""
_BY_MOBILE = f"""
SELECT {_FIELDS} FROM {Contact._meta.db_table} WHERE organization_id = %s AND mobile = ANY(%s)
ORDER BY id
"""


def contacts_of_many(
    ids_by_organization: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, ContactRecord]]:
    """Return embedded contacts by organization and id, by one query.

    `ids_by_organization` holds, for each organization, ids that are UUIDs in canonical form.
    """
    contacts: dict[str, dict[str, ContactRecord]] = {each: {} for each in ids_by_organization}
    pairs = [
        (each, contact_id)
        for each, contact_ids in ids_by_organization.items()
        for contact_id in contact_ids
    ]
    if not pairs:
        return contacts
    columns = [sql.array(list(column)) for column in zip(*pairs, strict=True)]
    for organization_id, *row in prepared_statements.execute(_CONTACTS_OF_MANY, columns):
        contacts[organization_id][row[0]] = ContactRecord(*row)
    return contacts


class EmbeddedConnector(Connector):
    """One organization's records in PostgreSQL."""

    def get_contacts(
        self, contact_ids: Sequence[str], *, deadline: Deadline = NO_DEADLINE
    ) -> dict[str, ContactRecord]:
        keys = [text for text in contact_ids if ids.is_canonical(text)]
        rows = prepared_statements.execute(_CONTACTS, [self.organization_id, sql.array(keys)])
        return {row[0]: ContactRecord(*row) for row in rows}

    def find_by_mobile(self, numbers: Sequence[str]) -> dict[str, list[ContactRecord]]:
        spellings = {number: addresses.phone_spellings(number) for number in numbers}
        searched = sorted({each for spelled in spellings.values() for each in spelled})
        with connection.cursor() as cursor:
            cursor.execute(_BY_MOBILE, [self.organization_id, searched])
            contacts = [ContactRecord(*row) for row in cursor.fetchall()]
        return {
            number: [each for each in contacts if each.mobile in spellings[number]]
            for number in numbers
        }

    def get_records(
        self, record_ids: Sequence[str], *, deadline: Deadline = NO_DEADLINE
    ) -> dict[str, Record]:
        keys = [key for text in record_ids if (key := ids.parse(text))]
        with connection.cursor() as cursor:
            cursor.execute(RECORDS, {"organization": self.organization_id, "ids": keys})
            records = [orjson.loads(text) for (text,) in cursor.fetchall()]
        return {record["id"]: record for record in records}

    def find_contacts_by_email(
        self, email: str, *, limit: int, deadline: Deadline
    ) -> list[ContactRecord]:
        rows = self._rows(finds.BY_EMAIL, limit, deadline, emails=addresses.spellings(email))
        return [finds.contact(row) for row in rows]

    def find_contacts_by_phone(
        self, phone: str, *, limit: int, deadline: Deadline
    ) -> list[ContactRecord]:
        phones = list(addresses.phone_spellings(phone))
        rows = self._rows(finds.BY_PHONE, limit, deadline, phones=phones)
        return [finds.contact(row) for row in rows]

    def find_accounts(self, name: str, *, limit: int, deadline: Deadline) -> list[AccountRecord]:
        folded = folding.account_name(name)
        rows = self._rows(finds.ACCOUNTS, limit, deadline, name=name, folded=folded)
        return [AccountRecord(*row) for row in rows]

    def find_cases(self, email: str, *, limit: int, deadline: Deadline) -> list[CaseRecord]:
        rows = self._rows(finds.CASES, limit, deadline, emails=addresses.spellings(email))
        return [CaseRecord(*row) for row in rows]

    def find_registrations(
        self, email: str, *, limit: int, deadline: Deadline
    ) -> list[RegistrationRecord]:
        rows = self._rows(finds.REGISTRATIONS, limit, deadline, emails=addresses.spellings(email))
        return [RegistrationRecord(*row) for row in rows]

    def find_speakers(
        self, contact_id: str, event_id: str, *, limit: int, deadline: Deadline
    ) -> list[SpeakerRecord]:
        contact, event = ids.parse(contact_id), ids.parse(event_id) if event_id else None
        if contact is None or (event_id and event is None):
            return []
        rows = self._rows(finds.SPEAKERS, limit, deadline, contact=contact, event=event)
        return [SpeakerRecord(*row) for row in rows]

    def find_exhibitors(
        self, contact_id: str, *, limit: int, deadline: Deadline
    ) -> list[ExhibitorRecord]:
        contact = ids.parse(contact_id)
        if contact is None:
            return []
        rows = self._rows(finds.EXHIBITORS, limit, deadline, contact=contact)
        return [ExhibitorRecord(*row) for row in rows]

    def create(self, new: New, *, deadline: Deadline) -> str:
        return creates.create(self.organization_id, new, deadline)

    def find_created(self, new: New, *, since: datetime, deadline: Deadline) -> str:
        return creates.find_created(self.organization_id, new, since)

    def _rows(
        self, statement: str, limit: int, deadline: Deadline, **values: object
    ) -> list[tuple[Any, ...]]:
        defaults = {"organization": self.organization_id, "limit": limit}
        return finds.rows(statement, {**defaults, **values}, deadline)
