"""The tables of organizations and where they are, their people and programs, the audit, the request
log, and bases for imports of files. `public_keys` reads the keys that applications may have.
"""

from rme.tenants.models.access import (
    ANY_CATEGORY,
    INTEGRATION_GROUP,
    ApiKey,
    Application,
    ApplicationKey,
    Assertion,
    GuessCount,
    Invitation,
    Membership,
    Organization,
    User,
    new_text_id,
)
from rme.tenants.models.audit import AuditEntry, AuditValues
from rme.tenants.models.cells import Cell, Move, Placement
from rme.tenants.models.imports import FileImport, FilePart
from rme.tenants.models.request_log import RequestLogEntry

__all__ = [
    "ANY_CATEGORY",
    "INTEGRATION_GROUP",
    "ApiKey",
    "Application",
    "ApplicationKey",
    "Assertion",
    "AuditEntry",
    "AuditValues",
    "Cell",
    "FileImport",
    "FilePart",
    "GuessCount",
    "Invitation",
    "Membership",
    "Move",
    "Organization",
    "Placement",
    "RequestLogEntry",
    "User",
    "new_text_id",
]
