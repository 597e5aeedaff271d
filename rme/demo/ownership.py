"""Which organizations belong to the demo. It touches no others, whatever their ids are.

The demo marks each organization that it creates (`Organization.demo_part`). Earlier releases did
not: the random ids in `demo.json` show which organizations are theirs.
"""

from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings

from rme.crm.models import Contact
from rme.tenants.models import Application, Organization, User

Values = Mapping[str, Any]
"""The values of one organization in `demo.json`."""
_CLIENT_IDS = ("client_id", "test_client_id", "jwt_client_id")


def find(part: str, values: Values) -> Organization | None:
    """Return the organization that is one of the demo's two parts, or None."""
    rows = list(Organization.objects.filter(demo_part=part).order_by("pk"))
    preferred = (values.get("org"), own_id(part))
    rows.sort(key=lambda row: row.pk not in preferred)
    if rows:
        return rows[0]
    row = Organization.objects.filter(pk=values.get("org", ""), demo_part="").first()
    if row is None or not _has_what_the_demo_made(row, values):
        return None
    # An earlier release created it, perhaps before the simulator's switch existed.
    row.demo_part, row.simulator = part, True
    row.save(update_fields=["demo_part", "simulator"])
    return row


def _has_what_the_demo_made(row: Organization, values: Values) -> bool:
    names = [values[name] for name in _CLIENT_IDS if name in values]
    return (
        Application.objects.filter(organization=row, client_id__in=names).exists()
        or Contact.objects.filter(organization=row, pk__in=values.get("contact_ids", ())).exists()
    )


def is_of_this_database(contents: Values) -> bool:
    """Return whether `demo.json` belongs to this database, and not to an earlier one."""
    for values in (contents, contents.get("other", {})):
        row = Organization.objects.filter(pk=values.get("org", "")).first()
        if row is not None and _has_what_the_demo_made(row, values):
            return True
    admin = User.objects.filter(username=contents.get("admin_user", "")).first()
    return admin is not None and admin.check_password(contents["admin_password"])


def own_id(part: str) -> str:
    """Return an organization's id, which includes the cell, so that no two cells share an id."""
    return f"{part}-{settings.CELL}" if settings.CELL else part


def shown_name(name: str) -> str:
    """Return an organization's name, which includes the cell: people have both before them."""
    return f"{name} ({settings.CELL})" if settings.CELL else name


def free_id(part: str) -> str:
    """Return an unused id for an organization: others may have taken `demo` or `other`."""
    return _free(own_id(part), lambda name: Organization.objects.filter(pk=name).exists())


def free_user_name(name: str) -> str:
    """Return an unused user name."""
    return _free(name, lambda candidate: User.objects.filter(username=candidate).exists())


def _free(name: str, is_taken: Callable[[str], bool]) -> str:
    number, candidate = 1, name
    while is_taken(candidate):
        number += 1
        candidate = f"{name}-{number}"
    return candidate
