"""Roles of people in organizations."""

from collections.abc import Iterable
from typing import cast

from django.db.models import QuerySet
from django.http import HttpRequest

from rme.tenants.models import Membership, Organization, User

Role = Membership.Role
EVERYBODY = frozenset(Role.values)
READERS = frozenset({Role.OWNER, Role.EDITOR, Role.VIEWER})
EDITORS = frozenset({Role.OWNER, Role.EDITOR})
OWNERS = frozenset({Role.OWNER})
NOBODY: frozenset[str] = frozenset()


class _RequestOfMember(HttpRequest):
    """A request that keeps the roles of its user, as pairs of organization id and role."""

    _memberships: list[tuple[str, str]]


def organizations_of(request: HttpRequest, roles: Iterable[str]) -> list[str]:
    """Return the ids of organizations in which a person has one of the roles; cached."""
    memberships = getattr(request, "_memberships", None)
    if memberships is None:
        rows = Membership.objects.filter(user_id=cast(User, request.user).pk)
        memberships = list(rows.values_list("organization_id", "role"))
        cast(_RequestOfMember, request)._memberships = memberships
    wanted = set(roles)
    return [organization for organization, role in memberships if role in wanted]


def organizations_for(request: HttpRequest, roles: Iterable[str]) -> QuerySet[Organization]:
    """Return the organizations in which a person has one of the roles; superusers have all."""
    rows = Organization.objects.order_by("name", "id")
    if request.user.is_superuser:
        return rows
    return rows.filter(pk__in=organizations_of(request, roles))
