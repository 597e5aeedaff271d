"""Admin pages of provider accounts. Importing them registers them."""

from messaging.admin.accounts import pages

__all__ = ["pages"]
