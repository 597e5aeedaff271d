"""The audit: append-only entries of who did what, when and from where.

What an entry says about its object may describe a person. It stands apart (AuditValues), so that an
erasure can remove it; the entry keeps its digest, by which values that are there are verified.

All entries are written by `record`. Other packages import what stands here, and `request_log`: the
REST requests of the last days.
"""

from rme.tenants.audit.actors import (
    COMMAND_LINE,
    ActingRequest,
    Actor,
    actor_of,
    application,
    person_behind,
    stranger,
)
from rme.tenants.audit.entries import (
    Action,
    NewEntry,
    about,
    about_account,
    about_person,
    actions_of,
    deletions,
)
from rme.tenants.audit.reader import (
    AuditFilter,
    AuditLine,
    describe_log_entry,
    find,
    get,
    has_entries,
    history,
)
from rme.tenants.audit.values import Values, describe, is_secret, of_form, values_of
from rme.tenants.audit.writer import erase, record, record_read

__all__ = [
    "COMMAND_LINE",
    "ActingRequest",
    "Action",
    "Actor",
    "AuditFilter",
    "AuditLine",
    "NewEntry",
    "Values",
    "about",
    "about_account",
    "about_person",
    "actions_of",
    "actor_of",
    "application",
    "deletions",
    "describe",
    "describe_log_entry",
    "erase",
    "find",
    "get",
    "has_entries",
    "history",
    "is_secret",
    "of_form",
    "person_behind",
    "record",
    "record_read",
    "stranger",
    "values_of",
]
