"""Organizations: their settings as cached records.

`latest` remembers the organization in which a person worked last; `languages` names the languages
of organizations, people and templates.
"""

from rme.tenants.organizations.records import (
    FIELDS,
    OrganizationRecord,
    get,
    get_many,
    random_id,
)

__all__ = ["FIELDS", "OrganizationRecord", "get", "get_many", "random_id"]
