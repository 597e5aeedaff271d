"""Admin pages of organizations, people and keys. Importing them registers them."""

from rme.tenants.admin import keys, pages

__all__ = ["keys", "pages"]
