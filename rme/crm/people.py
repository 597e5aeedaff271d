"""Finding people as a person types them: by email address, phone number, id or name.

Names and parts of addresses are searched in the embedded platform only: remote platforms are asked
for whole addresses and ids.
"""

import re
import time
from collections.abc import Iterable

from django.utils.translation import gettext

from rme.core import addresses, errors, ids
from rme.core.db import locks, statement_timeout
from rme.crm import contacts, lookups, platforms, words
from rme.crm.connectors.base import Deadline, PlatformError
from rme.crm.connectors.records import ContactRecord
from rme.crm.models import Contact
from rme.tenants import organizations

SECONDS = 3.0
"""How long a remote platform may take."""
NAME_SECONDS = 2.0
"""How long a search for a name or a part of an address may take."""
LONGEST_NAME = 100
SHORTEST_PART = 4
"""The fewest digits by which a phone number is found."""
_DIGITS = re.compile(r"[\d\s()./+-]+")
_LAST = chr(0x10FFFF)


def _all(statements: Iterable[str]) -> str:
    """Return the statement that has the rows of each of some, in this order."""
    return f"({') UNION ALL ('.join(statements)})"


_ROWS = f"""SELECT id::text, first_name, last_name, email, mobile, language, zone
FROM {Contact._meta.db_table} WHERE organization_id = %(organization)s AND {{}} LIMIT %(limit)s"""
# Plan: contact_by_words, or the table from its start if most rows match. Whole words come first.
_BY_NAME = _all(_ROWS.format(words.named(mark)) for mark in (words.WHOLE, words.BEGINNING))
# Plan: contact_by_email_start. By a range instead of LIKE: a pattern that is a parameter uses no
# index once the plan is generic.
_BY_EMAIL = _ROWS.format("email_folded ~>=~ %(email)s AND email_folded ~<~ (%(email)s || %(last)s)")
# Plan: contact_by_phone, contact_by_mobile. A letter sorts after all digits, in every locale.
_BEGINS = "{0} <> '' AND {0} >= %({1})s AND {0} < (%({1})s || 'a')"
# Plan: contact_by_words.
_BY_ENDING = _ROWS.format(words.ENDING)


def find(organization_id: str, text: str, *, limit: int) -> list[ContactRecord]:
    """Return people by what was typed; at most three statements. Raise Unavailable."""
    text = text.strip()
    if not text or "\0" in text:
        return []
    if email := addresses.email(text):
        return _by_address(organization_id, email, limit, "email")
    region = organizations.get(organization_id).region
    if any(character.isdigit() for character in text) and addresses.phone_readings(text, region):
        return _by_address(organization_id, text, limit, "phone")
    is_embedded = platforms.get(organization_id).kind == platforms.EMBEDDED
    if ids.is_canonical(text) or (not is_embedded and len(text) <= 64 and " " not in text):
        contact = contacts.get_contacts(organization_id, [text]).get(text)
        return [contact] if contact else []
    return _by_name(organization_id, text, limit) if is_embedded else []


def suggest(organization_id: str, text: str, *, limit: int, by_parts: bool) -> list[ContactRecord]:
    """Return people while somebody types; at most three statements, and no remote platform.
    Raise Unavailable.

    `by_parts` also finds people by the beginning of an email address and by parts of a phone
    number. It is not for those who see only masked addresses: they could guess them bit by bit.
    """
    if platforms.get(organization_id).kind != platforms.EMBEDDED:
        return []
    contacts = find(organization_id, text, limit=limit)
    if by_parts and len(contacts) < limit:
        contacts += _by_part(organization_id, text.strip(), limit)
    return list({contact.id: contact for contact in contacts}.values())[:limit]


def lock_address(organization_id: str, email: str) -> None:
    """Keep others from adding a contact with an address until the transaction ends.

    Look for the person after it: somebody may just have added them.
    """
    address = addresses.email(email) or email
    locks.until_commit([f"contact {organization_id} {address}"])


def _by_address(organization_id: str, address: str, limit: int, kind: str) -> list[ContactRecord]:
    """Return people by an email address in its normal form, or a number. Raise Unavailable."""
    deadline = Deadline.after(SECONDS)
    try:
        connector = contacts.connector_of(organization_id)
        if kind == "email":
            return lookups.contacts_by_email(connector, address, limit=limit, deadline=deadline)
        region = organizations.get(organization_id).region
        return lookups.contacts_by_phone(
            connector, address, region=region, limit=limit, deadline=deadline
        )
    except PlatformError as error:
        raise errors.Unavailable(gettext("The organization's platform does not answer.")) from error


def _by_name(organization_id: str, text: str, limit: int) -> list[ContactRecord]:
    """Return contacts by the beginnings of words of their names; those with whole words first."""
    text = text[:LONGEST_NAME]
    if "@" in text or not any(character.isalnum() for character in text):
        return []
    rows = _rows(_BY_NAME, organization=organization_id, text=text, limit=limit)
    contacts = list({row.id: row for row in rows}.values())[:limit]
    return sorted(contacts, key=lambda contact: (contact.name, contact.id))


def _by_part(organization_id: str, text: str, limit: int) -> list[ContactRecord]:
    """Return contacts by the beginning of an email address, or by a part of a phone number."""
    if "\0" in text or not text:
        return []
    if not _DIGITS.fullmatch(text):
        email = text.lower()
        return _rows(_BY_EMAIL, organization=organization_id, email=email, last=_LAST, limit=limit)
    digits = addresses.digits(text)
    if len(digits) < SHORTEST_PART:
        return []
    region = organizations.get(organization_id).region
    beginnings = {
        f"start{place}": beginning
        for place, beginning in enumerate(addresses.phone_beginnings(text, region))
    }
    parts = [
        _ROWS.format(_BEGINS.format(column, name))
        for name in beginnings
        for column in ("mobile", "phone")
    ]
    values = {**beginnings, "ending": digits[::-1]}
    return _rows(_all([*parts, _BY_ENDING]), organization=organization_id, limit=limit, **values)


def _rows(statement: str, **values: str | int) -> list[ContactRecord]:
    """Return contacts that are stored here. Raise Unavailable if it takes too long."""
    try:
        with statement_timeout.bounded(time.monotonic() + NAME_SECONDS) as cursor:
            cursor.execute(statement, values)
            return [ContactRecord(*row) for row in cursor.fetchall()]
    except statement_timeout.StatementLate as error:
        raise errors.Unavailable(
            gettext("Too many people match. Type more of the name.")
        ) from error
