"""Admin pages of the messaging service, by noun. Importing them registers them."""

from messaging.admin import accounts, held, messages, people, policy, templates

__all__ = ["accounts", "held", "messages", "people", "policy", "templates"]
