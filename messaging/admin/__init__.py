"""Admin pages of the messaging service, by noun. Importing them registers them.

Other packages use `first_steps`, the checklist of an organization.
"""

from messaging.admin import (
    categories,
    devices,
    in_console,
    messages,
    people,
    policy,
    templates,
)

__all__ = [
    "categories",
    "devices",
    "in_console",
    "messages",
    "people",
    "policy",
    "templates",
]
