"""The creates of the embedded platform."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from rme.core import ids
from rme.core.db import statement_timeout
from rme.crm import folding
from rme.crm.connectors.base import Deadline, PlatformSlow, UnknownParent
from rme.crm.connectors.records import New, NewAccount, NewCase, NewContact
from rme.crm.models import Account, Case, Contact

_ACCOUNT = f"""
INSERT INTO {Account._meta.db_table} (id, organization_id, name, name_folded, phone, website)
VALUES (%(id)s, %(organization)s, %(name)s, %(folded)s, '', '')"""

# A parent is matched by id and organization, so a record of another organization is not found.
_CONTACT = f"""
INSERT INTO {Contact._meta.db_table}
  (id, organization_id, account_id, first_name, last_name, email, phone, mobile, language, zone)
SELECT %(id)s, %(organization)s, account.id, %(first_name)s, %(last_name)s, %(email)s,
  '', '', '', ''
FROM (SELECT %(account_id)s::uuid AS id) given LEFT JOIN {Account._meta.db_table} account
  ON account.id = given.id AND account.organization_id = %(organization)s"""

# One create at a time in each organization, so that two cases never get the same number.
_NUMBERING = "SELECT pg_advisory_xact_lock(hashtextextended('case number ' || %(organization)s, 0))"
_CASE = f"""
INSERT INTO {Case._meta.db_table} (id, organization_id, number, subject, issue, status, priority,
  contact_id, account_id)
SELECT %(id)s, %(organization)s, lpad((coalesce((SELECT number FROM {Case._meta.db_table}
    WHERE organization_id = %(organization)s AND number ~ '^[0-9]{{8}}$'
    ORDER BY number DESC LIMIT 1)::bigint, 0) + 1)::text, 8, '0'),
  %(subject)s, %(issue)s, '{Case.Status.NEW.value}', 'Medium', contact.id, account.id
FROM (SELECT %(contact_id)s::uuid AS contact_id, %(account_id)s::uuid AS account_id) given
LEFT JOIN {Contact._meta.db_table} contact
  ON contact.id = given.contact_id AND contact.organization_id = %(organization)s
LEFT JOIN {Account._meta.db_table} account
  ON account.id = given.account_id AND account.organization_id = %(organization)s"""


def create(organization_id: str, new: New, deadline: Deadline) -> str:
    """Store a record and return its id. Raise PlatformSlow or UnknownParent."""
    identifier = ids.new_text_id()
    values = {"id": identifier, "organization": organization_id, **_values(new)}
    try:
        match new:
            case NewAccount():
                _run(deadline, _ACCOUNT, {**values, "folded": folding.account_name(new.name)})
            case NewContact():
                _run(deadline, _CONTACT, values)
            case NewCase():
                with transaction.atomic():
                    _run(deadline, _NUMBERING, values)
                    _run(deadline, _CASE, values)
    except statement_timeout.StatementLate as error:
        raise PlatformSlow from error
    return identifier


def _run(deadline: Deadline, statement: str, values: Mapping[str, object]) -> None:
    with statement_timeout.bounded(deadline.until) as cursor:
        cursor.execute(statement, values)


def _parent(text: str, field: str) -> UUID | None:
    key = ids.parse(text) if text else None
    if text and key is None:
        raise UnknownParent(field)
    return key


def _values(new: New) -> dict[str, Any]:
    """Return the columns of a new record, with its parents' ids. Raise UnknownParent."""
    return {
        each.name: _parent(value, each.name) if each.name.endswith("_id") else value
        for each in fields(new)
        if isinstance(value := getattr(new, each.name), str)
    }


def find_created(organization_id: str, new: New, since: datetime) -> str:
    """Return the id of a record with exactly these values created since a time, or ""."""
    rows: dict[str, QuerySet[Any]] = {
        "Account": Account.objects.all(),
        "Contact": Contact.objects.all(),
        "Case": Case.objects.all(),
    }
    # UUIDv7 ids begin with the time, so the range is read from the primary key.
    matching = rows[new.kind].filter(
        organization_id=organization_id, pk__gte=ids.at_least(since), **_values(new)
    )
    key = matching.order_by("pk").values_list("pk", flat=True).first()
    return str(key) if key else ""
