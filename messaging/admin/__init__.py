"""Admin pages of the messaging service, by noun. Importing them registers them."""

from messaging.admin import (
    accounts,
    categories,
    endpoints,
    manual_review,
    messages,
    people,
    policy,
    templates,
)

__all__ = [
    "accounts",
    "categories",
    "endpoints",
    "manual_review",
    "messages",
    "people",
    "policy",
    "templates",
]
