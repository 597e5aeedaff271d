"""The admin of a superuser, and an organization's pages of the console."""

from django.urls import reverse

from tests.tenants.admin.conftest import root

__all__ = ["root"]


def url(name, *args, org="acme"):
    """Return the address of a page of the console."""
    return reverse(f"console:{name}", args=[org, *args])
