"""Admin pages of the messaging service, by noun. Importing them registers them."""

from messaging.admin import messages, people, policy, templates

__all__ = ["messages", "people", "policy", "templates"]
