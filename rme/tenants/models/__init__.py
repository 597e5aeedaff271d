"""The tables of organizations, their people and programs, and the audit."""

from rme.tenants.models.access import (
    INTEGRATION_GROUP,
    ApiKey,
    Application,
    ApplicationKey,
    Assertion,
    Invitation,
    Membership,
    Organization,
    User,
    new_text_id,
)
from rme.tenants.models.audit import AuditEntry, AuditValues

__all__ = [
    "INTEGRATION_GROUP",
    "ApiKey",
    "Application",
    "ApplicationKey",
    "Assertion",
    "AuditEntry",
    "AuditValues",
    "Invitation",
    "Membership",
    "Organization",
    "User",
    "new_text_id",
]
