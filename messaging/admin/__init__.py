"""Admin pages of the messaging service, by noun. Importing them registers them.

Other packages use `first_steps`, the checklist of an organization.
"""

from messaging.admin import (
    accounts,
    categories,
    devices,
    endpoints,
    messages,
    people,
    policy,
    templates,
)

__all__ = [
    "accounts",
    "categories",
    "devices",
    "endpoints",
    "messages",
    "people",
    "policy",
    "templates",
]
