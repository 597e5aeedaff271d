"""Admin pages of templates, their versions and partials. Importing them registers them."""

from messaging.admin.templates import partials, templates, versions

__all__ = ["partials", "templates", "versions"]
