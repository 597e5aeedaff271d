"""The look-ups of the embedded platform: one statement each, with the columns of its record.

SQL text, since bots wait for them: building a statement in the ORM costs as much as running it.
Every statement filters by organization, and every join stays within it. They order by time and
never by id alone: for that the planner would scan the primary key of a million rows to find the
ten newest.
"""

from collections.abc import Mapping
from typing import Any

from django.db.models import Model

from rme.core.db import statement_timeout
from rme.crm.connectors.base import Deadline, PlatformSlow
from rme.crm.connectors.records import ContactRecord
from rme.crm.models import Account, Case, Contact, Event, EventRegistration, Exhibitor, Speaker


def _table(model: type[Model]) -> str:
    return model._meta.db_table


def _join(model: type[Model], name: str, row: str) -> str:
    return (
        f"LEFT JOIN {_table(model)} {name} ON {name}.id = {row}.{name}_id "
        f"AND {name}.organization_id = {row}.organization_id"
    )


_CONTACT = f"""
SELECT c.id::text, c.first_name, c.last_name, c.email, c.mobile, c.language, c.zone,
  CASE WHEN c.phone <> '' THEN c.phone ELSE c.mobile END, ARRAY[c.phone, c.mobile],
  coalesce(account.id::text, ''), coalesce(account.name, '')
FROM {_table(Contact)} c {_join(Account, "account", "c")}
WHERE c.organization_id = %(organization)s AND """
_NEWEST = " ORDER BY c.created_at DESC, c.id DESC LIMIT %(limit)s"

BY_EMAIL = f"{_CONTACT} c.email_folded = ANY(%(emails)s) {_NEWEST}"
# `<> ''` lets the planner take the two partial indexes.
BY_PHONE = f"""{_CONTACT} ((c.phone = ANY(%(phones)s) AND c.phone <> '')
  OR (c.mobile = ANY(%(phones)s) AND c.mobile <> '')) {_NEWEST}"""

ACCOUNTS = f"""
SELECT id::text, name, phone, website FROM {_table(Account)}
WHERE organization_id = %(organization)s AND name_folded = %(folded)s
ORDER BY name = %(name)s DESC, created_at DESC, id DESC LIMIT %(limit)s"""

CASES = f"""
SELECT r.id::text, r.number, r.subject, r.issue, r.status, r.priority,
  r.status = '{Case.Status.CLOSED.value}', r.created_at, c.id::text, c.email,
  coalesce(account.id::text, '')
FROM {_table(Contact)} c
JOIN {_table(Case)} r ON r.contact_id = c.id AND r.organization_id = c.organization_id
{_join(Account, "account", "r")}
WHERE c.organization_id = %(organization)s AND c.email_folded = ANY(%(emails)s)
ORDER BY r.created_at DESC, r.id DESC LIMIT %(limit)s"""

_CANCELLED = ", ".join(f"'{word}'" for word in EventRegistration.NOT_REGISTERED)
REGISTRATIONS = f"""
WITH found AS MATERIALIZED (
  SELECT id FROM {_table(EventRegistration)}
  WHERE organization_id = %(organization)s AND email_folded = ANY(%(emails)s)
  UNION
  SELECT r.id FROM {_table(Contact)} c JOIN {_table(EventRegistration)} r
    ON r.contact_id = c.id AND r.organization_id = c.organization_id
  WHERE c.organization_id = %(organization)s AND c.email_folded = ANY(%(emails)s))
SELECT r.id::text, event.id::text, event.name, event.starts_at, coalesce(contact.id::text, ''),
  r.name, r.email, r.status, lower(r.status) NOT IN ({_CANCELLED}), r.attended, r.ticket_type,
  r.created_at, coalesce(contact.email, '')
FROM found JOIN {_table(EventRegistration)} r ON r.id = found.id
JOIN {_table(Event)} event ON event.id = r.event_id
  AND event.organization_id = r.organization_id
{_join(Contact, "contact", "r")}
ORDER BY event.starts_at DESC, r.created_at DESC, r.id DESC LIMIT %(limit)s"""

SPEAKERS = f"""
SELECT r.id::text, event.id::text, event.name, contact.id::text,
  trim(contact.first_name || ' ' || contact.last_name), contact.email, r.session_title,
  r.session_start, r.room, r.status
FROM {_table(Speaker)} r
JOIN {_table(Event)} event ON event.id = r.event_id
  AND event.organization_id = r.organization_id
JOIN {_table(Contact)} contact ON contact.id = r.contact_id
  AND contact.organization_id = r.organization_id
WHERE r.organization_id = %(organization)s AND r.contact_id = %(contact)s
  AND (%(event)s::uuid IS NULL OR r.event_id = %(event)s::uuid)
ORDER BY event.starts_at DESC, r.session_start DESC NULLS LAST, r.id DESC LIMIT %(limit)s"""

EXHIBITORS = f"""
SELECT r.id::text, event.id::text, event.name, coalesce(account.id::text, ''),
  coalesce(account.name, ''), r.contact_id::text, r.booth, r.level, r.status
FROM {_table(Exhibitor)} r
JOIN {_table(Event)} event ON event.id = r.event_id
  AND event.organization_id = r.organization_id
{_join(Account, "account", "r")}
WHERE r.organization_id = %(organization)s AND r.contact_id = %(contact)s
ORDER BY event.starts_at DESC, r.id DESC LIMIT %(limit)s"""


def rows(statement: str, values: Mapping[str, object], deadline: Deadline) -> list[tuple[Any, ...]]:
    """Return the rows of a look-up. Raise PlatformSlow at the deadline.

    Other database errors are our own and pass through.
    """
    try:
        with statement_timeout.bounded(deadline.until) as cursor:
            cursor.execute(statement, values)
            result: list[tuple[Any, ...]] = cursor.fetchall()
    except statement_timeout.StatementLate as error:
        raise PlatformSlow from error
    return result


def contact(row: tuple[Any, ...]) -> ContactRecord:
    """Return the contact of a row of `BY_EMAIL` or `BY_PHONE`."""
    record = ContactRecord(*row)
    return record._replace(phones=tuple(filter(None, record.phones)))
