"""Admin pages of the built-in records and of platforms. Importing them registers them."""

from rme.crm.admin import pages, platforms

__all__ = ["pages", "platforms"]
