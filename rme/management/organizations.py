"""The organization that a command works on."""

from django.core.management.base import CommandError

from rme.core import errors
from rme.tenants import organizations
from rme.tenants.models import Organization


def require_here(organization_id: str) -> None:
    """Raise CommandError unless an organization exists, and its rows may be changed here.

    A move leaves rows behind: what is done to them is lost, and the organization's own stay.
    """
    try:
        organizations.require_served(organization_id, at_once=True)
    except errors.Misdirected as error:
        headers = ", ".join(f"{name}: {value}" for name, value in error.headers.items())
        raise CommandError(
            f"The organization {organization_id} is served elsewhere ({headers}). "
            "Give the command there."
        ) from error
    except errors.Unavailable as error:
        raise CommandError(f"The organization {organization_id} is paused: it moves.") from error
    if not Organization.objects.filter(pk=organization_id).exists():
        raise CommandError(f"There is no organization {organization_id}.")
