"""The fields of each kind of record, and the one statement that reads records of all kinds.

References appear as id and name, so that a template needs no second look-up.
"""

from django.db import models

from rme.crm.models import Account, Case, Contact, Event, EventRegistration, Exhibitor, Speaker

RECORD_FIELDS: dict[type[models.Model], tuple[str, ...]] = {
    Account: ("name", "phone", "website"),
    Contact: (
        *("first_name", "last_name", "email", "phone", "mobile", "language", "zone"),
        *("account_id", "account_name"),
    ),
    Case: (
        *("number", "subject", "issue", "status", "priority"),
        *("contact_id", "contact_name", "account_id", "account_name"),
    ),
    Event: ("name", "starts_at", "ends_at"),
    EventRegistration: (
        *("name", "email", "status", "ticket_type", "attended"),
        *("contact_id", "contact_name", "event_id", "event_name"),
        *("event_starts_at", "event_ends_at"),
    ),
    Speaker: (
        *("session_title", "session_start", "room", "status", "contact_id", "contact_name"),
        *("event_id", "event_name", "event_starts_at", "event_ends_at"),
    ),
    Exhibitor: (
        *("booth", "level", "status", "account_id", "account_name", "contact_id", "contact_name"),
        *("event_id", "event_name", "event_starts_at", "event_ends_at"),
    ),
}
"""By kind, in addition to `type`, `id` and `created_at`."""

_NAMES = {
    "account": {"account_name": "account.name"},
    "contact": {"contact_name": "trim(contact.first_name || ' ' || contact.last_name)"},
    "event": {
        "event_name": "event.name",
        "event_starts_at": "event.starts_at",
        "event_ends_at": "event.ends_at",
    },
}
_TABLES: dict[str, type[models.Model]] = {"account": Account, "contact": Contact, "event": Event}


def _select(model: type[models.Model], fields: tuple[str, ...]) -> str:
    related = [name for name in _TABLES if f"{name}_id" in fields]
    columns = {name: f"r.{name}" for name in ("id", "created_at", *fields)}
    for name in related:
        columns |= _NAMES[name]
    pairs = ", ".join(f"'{name}', {column}" for name, column in columns.items())
    joins = " ".join(
        f"LEFT JOIN {_TABLES[name]._meta.db_table} {name} ON {name}.id = r.{name}_id "
        f"AND {name}.organization_id = r.organization_id"
        for name in related
    )
    return (
        f"SELECT json_build_object('type', '{model.__name__}', {pairs})::text "
        f"FROM {model._meta.db_table} r {joins} "
        "WHERE r.organization_id = %(organization)s AND r.id = ANY(%(ids)s)"
    )


RECORDS = " UNION ALL ".join(_select(model, fields) for model, fields in RECORD_FIELDS.items())
