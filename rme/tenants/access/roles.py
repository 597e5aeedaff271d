"""Roles of people in organizations, each a set of permissions.

The table here is what every check asks and what the page "What roles may do" shows.
"""

from collections.abc import Mapping
from typing import Protocol, cast

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet, TextChoices
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from rme.tenants import organizations
from rme.tenants.models import Membership, Organization, User

Role = Membership.Role


class Permission(TextChoices):
    """What a person may do in an organization."""

    SEE_MESSAGES = "SEE_MESSAGES", _("See messages, their statuses and reasons")
    SEE_CONTENTS = "SEE_CONTENTS", _("Read the contents of messages")
    SEE_ADDRESSES = "SEE_ADDRESSES", _("See whole email addresses and phone numbers")
    OPERATE = "OPERATE", _("Decide manual reviews, pause sending, change categories")
    SEE_PEOPLE = "SEE_PEOPLE", _("See contacts, consent, suppressions and devices")
    CHANGE_PEOPLE = "CHANGE_PEOPLE", _("Change contacts, record consent, lift suppressions")
    SEE_TEMPLATES = "SEE_TEMPLATES", _("See and preview templates")
    CHANGE_TEMPLATES = "CHANGE_TEMPLATES", _("Write template drafts")
    PUBLISH_TEMPLATES = "PUBLISH_TEMPLATES", _("Publish templates")
    SEE_SETTINGS = "SEE_SETTINGS", _("See providers, domains, rules, pauses and webhooks")
    CHANGE_SETTINGS = "CHANGE_SETTINGS", _("Change providers, sender domains, rules and the CRM")
    CHANGE_WEBHOOKS = "CHANGE_WEBHOOKS", _("Change webhook endpoints")
    CHANGE_KEYS = "CHANGE_KEYS", _("Create and revoke applications and API keys")
    GRANT_ROLES = "GRANT_ROLES", _("Invite people, grant roles, change the organization")
    SEE_AUDIT = "SEE_AUDIT", _("Read and export the audit")
    SEND_TRANSACTIONAL = "SEND_TRANSACTIONAL", _("Let programs send transactional messages")
    SEND_ANY = "SEND_ANY", _("Let programs send messages of every category")
    DEPLOYMENT = "DEPLOYMENT", _("Run the deployment (superusers only)")


_READING = frozenset(
    {
        Permission.SEE_MESSAGES,
        Permission.SEE_CONTENTS,
        Permission.SEE_ADDRESSES,
        Permission.SEE_PEOPLE,
        Permission.SEE_TEMPLATES,
        Permission.SEE_SETTINGS,
    }
)
PERMISSIONS: Mapping[str, frozenset[Permission]] = {
    Role.OWNER: frozenset(Permission) - {Permission.DEPLOYMENT},
    Role.OPERATOR: _READING
    | {
        Permission.OPERATE,
        Permission.CHANGE_PEOPLE,
        Permission.CHANGE_TEMPLATES,
        Permission.PUBLISH_TEMPLATES,
        Permission.SEND_TRANSACTIONAL,
        Permission.SEND_ANY,
    },
    Role.TEMPLATE_EDITOR: frozenset({Permission.SEE_TEMPLATES, Permission.CHANGE_TEMPLATES}),
    Role.APPROVER: frozenset({Permission.SEE_TEMPLATES, Permission.PUBLISH_TEMPLATES}),
    Role.SUPPORT: frozenset({Permission.SEE_MESSAGES}),
    Role.VIEWER: _READING,
    Role.DEVELOPER: frozenset(
        {
            Permission.SEE_MESSAGES,
            Permission.SEE_TEMPLATES,
            Permission.SEE_SETTINGS,
            Permission.CHANGE_WEBHOOKS,
            Permission.CHANGE_KEYS,
            Permission.SEND_TRANSACTIONAL,
        }
    ),
}
"""The permissions of each role."""


class _UserWithRoles(Protocol):
    """A user of a request, with roles by organization once they have been read."""

    _roles: dict[str, str]
    _withheld: frozenset[Permission]


def may(user: User | AnonymousUser, organization_id: str, permission: Permission) -> bool:
    """Return whether a person has a permission in an organization. Superusers have all.

    Raise what `organizations.require_served` raises, for who would have it.
    """
    if not user.is_active or not user.is_staff:
        return False
    is_allowed = user.is_superuser or permission in _permissions(user).get(organization_id, ())
    if is_allowed:
        organizations.require_served(organization_id)
    return is_allowed


def held_permissions(user: User | AnonymousUser, organization_id: str) -> frozenset[Permission]:
    """Return what a person may do in an organization that is here; nothing in another."""
    if user.is_superuser and not organization_id:
        return frozenset(Permission)
    if not organizations.is_served(organization_id):
        return frozenset()
    if user.is_superuser:
        return frozenset(Permission)
    return _permissions(user).get(organization_id, frozenset())


def has_several_organizations(user: User | AnonymousUser) -> bool:
    """Return whether a person may have more than one organization."""
    return bool(user.is_superuser or len(_permissions(user)) > 1)


def own_organizations(request: HttpRequest, limit: int, *, text: str = "") -> list[tuple[str, str]]:
    """Return the ids and names of the first organizations of a person, by name; those with a text
    in the name, or at the beginning of the id.
    """
    rows = Organization.objects.order_by("name", "id")
    if text:
        rows = rows.filter(Q(name__icontains=text) | Q(pk__istartswith=text))
    if request.user.is_superuser:
        rows = rows.filter(organizations.served("pk", leaving=True))
    else:
        roles = _permissions(request.user)
        rows = rows.filter(pk__in=[each for each in roles if organizations.is_served(each)])
    return list(rows.values_list("pk", "name")[:limit])


def organizations_of(request: HttpRequest, permission: Permission) -> list[str]:
    """Return the ids of organizations in which a person's role has a permission; cached."""
    if not request.user.is_authenticated:
        return []
    permissions_by_organization = _permissions(request.user)
    return [
        organization
        for organization, permissions in permissions_by_organization.items()
        if permission in permissions and organizations.is_served(organization)
    ]


def organizations_for(request: HttpRequest, permission: Permission) -> QuerySet[Organization]:
    """Return the organizations in which a person has a permission; superusers have all
    that are here.
    """
    rows = Organization.objects.order_by("name", "id")
    if request.user.is_superuser:
        return rows.filter(organizations.served("pk", leaving=True))
    return rows.filter(pk__in=organizations_of(request, permission))


def grantable(user: User | AnonymousUser, organization_id: str) -> list[str]:
    """Return the roles that a person may grant or take away: none with more than its own."""
    if not may(user, organization_id, Permission.GRANT_ROLES):
        return []
    if user.is_superuser:
        return list(Role.values)
    permissions = _permissions(user)[organization_id]
    return [role for role in Role.values if PERMISSIONS[role] <= permissions]


def _permissions(user: User | AnonymousUser) -> dict[str, frozenset[Permission]]:
    """Return a person's permissions by organization; one query for a request."""
    roles = getattr(user, "_roles", None)
    if roles is None:
        rows = Membership.objects.filter(user_id=cast(User, user).pk)
        roles = dict(rows.values_list("organization_id", "role"))
        cast(_UserWithRoles, user)._roles = roles
    withheld: frozenset[Permission] = getattr(user, "_withheld", frozenset())
    return {each: PERMISSIONS.get(role, frozenset()) - withheld for each, role in roles.items()}


def withhold(user: User, permissions: frozenset[Permission]) -> None:
    """Take permissions from a user of a request, whatever its roles; not from superusers."""
    cast(_UserWithRoles, user)._withheld = permissions
