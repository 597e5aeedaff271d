"""Organizations: their settings as cached records, and whether they are served here.

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
from rme.tenants.organizations.serving import all_served, is_served, require_served, served

__all__ = [
    "FIELDS",
    "OrganizationRecord",
    "all_served",
    "get",
    "get_many",
    "is_served",
    "random_id",
    "require_served",
    "served",
]
