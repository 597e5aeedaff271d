"""Finding people as a person types them: by email address, phone number, id or name.

Names are searched in the embedded platform only: remote platforms are asked for addresses and ids.
"""

from django.db import connection
from django.utils.translation import gettext

from rme.core import addresses, errors, ids
from rme.core.db import locks
from rme.crm import contacts, lookups, platforms
from rme.crm.connectors.base import Deadline, PlatformError
from rme.crm.connectors.records import ContactRecord
from rme.crm.models import Contact
from rme.tenants import organizations

SECONDS = 3.0
"""How long a remote platform may take."""
_LAST = chr(0x10FFFF)

# By ranges instead of LIKE: a pattern that is a parameter uses no index once the plan is generic.
_PREFIX = "(lower({0}) ~>=~ %s AND lower({0}) ~<~ %s)"
_BY_NAME = f"""
SELECT id::text, first_name, last_name, email, mobile, language, zone
FROM {Contact._meta.db_table} WHERE organization_id = %s AND ({{}}) LIMIT %s
"""
_ONE = " OR ".join(_PREFIX.format(name) for name in ("last_name", "first_name"))
_TWO = " OR ".join(
    f"({_PREFIX.format(first)} AND {_PREFIX.format(second)})"
    for first, second in (("first_name", "last_name"), ("last_name", "first_name"))
)


def find(organization_id: str, text: str, *, limit: int) -> list[ContactRecord]:
    """Return people by what was typed; at most two statements. Raise Unavailable."""
    text = text.strip()
    if not text or "\0" in text:
        return []
    if email := addresses.email(text):
        return _by_address(organization_id, email, limit, "email")
    region = organizations.get(organization_id).region
    if any(character.isdigit() for character in text) and addresses.phone_readings(text, region):
        return _by_address(organization_id, text, limit, "phone")
    if len(text) <= 64 and " " not in text:
        if contact := contacts.get_contacts(organization_id, [text]).get(text):
            return [contact]
        if ids.is_canonical(text):
            return []
    if platforms.get(organization_id).kind != platforms.EMBEDDED:
        return []
    return _by_name(organization_id, text, limit)


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
    """Return embedded contacts whose first or last name begins with a word, or both with two."""
    first, _, second = text.lower().partition(" ")
    parts = [first, second.strip()] if second.strip() else [first]
    condition = _TWO if len(parts) == 2 else _ONE
    names = parts * 2  # either may be the first name
    bounds = [bound for name in names for bound in (name, name + _LAST)]
    with connection.cursor() as cursor:
        cursor.execute(_BY_NAME.format(condition), [organization_id, *bounds, limit])
        contacts = [ContactRecord(*row) for row in cursor.fetchall()]
    return sorted(contacts, key=lambda contact: (contact.name, contact.id))
