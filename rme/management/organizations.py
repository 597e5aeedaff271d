"""The organization that a command works on."""

from django.core.management.base import CommandError

from rme.tenants import cells
from rme.tenants.models import Organization


def require_here(organization_id: str) -> None:
    """Raise CommandError unless an organization exists, and its rows may be changed here.

    A move leaves rows behind: what is done to them is lost, and the organization's own stay.
    """
    found = cells.where(organization_id)
    if found.phase and found.phase != cells.Phase.LEAVING:
        raise CommandError(
            f"The organization {organization_id} is {found.phase} here: its rows are those of "
            f"the cell {found.cell}, so give the command there."
            if found.is_elsewhere
            else f"The organization {organization_id} is paused: it moves to the cell {found.cell}."
        )
    if not Organization.objects.filter(pk=organization_id).exists():
        raise CommandError(f"There is no organization {organization_id}.")
