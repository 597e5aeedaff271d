"""People who may issue a program's credentials, and programs that may do more than their makers.

A program keeps working when its maker loses a right: sending must not stop because somebody left.
It is listed until somebody with all its rights confirms it and so becomes its maker, or until
somebody removes permissions from it.
"""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now

from rme.tenants.access.roles import PERMISSIONS, Permission, may
from rme.tenants.models import ANY_CATEGORY, ApiKey, Application, Membership, User
from rme.tenants.oauth.permissions import (
    ALL_PERMISSIONS,
    TRANSACTIONAL,
    Grants,
    action_rights,
)


def rights_of(program: Application | ApiKey) -> frozenset[Permission]:
    """Return the rights that a person needs to grant a program's permissions."""
    if isinstance(program, ApiKey):
        return action_rights(program.actions or [])
    grants = Grants.of(program.permissions, program.send_categories)
    return grants.rights(test=program.mode == Application.Mode.TEST)


def confirm(program: Application | ApiKey, user: User) -> None:
    """Make a person the maker of a program. The caller has checked the person's rights."""
    type(program).objects.filter(pk=program.pk).update(maker=user.person)


def missing_rights(
    user: User, organization_id: str, needed: frozenset[Permission]
) -> list[Permission]:
    """Return the needed rights that a person lacks, in the order of `Permission`."""
    return [each for each in Permission if each in needed and not may(user, organization_id, each)]


def grantable(user: User, organization_id: str) -> Grants:
    """Return the most that a person may grant a live program: every category, or one, or none."""

    def may_give(permissions: Sequence[str], categories: Sequence[str]) -> bool:
        needed = Grants.of(permissions, categories).rights(test=False)
        return not missing_rights(user, organization_id, needed)

    permissions = [each for each in ALL_PERMISSIONS if may_give([each], [])]
    categories = [each for each in (ANY_CATEGORY, TRANSACTIONAL) if may_give([], [each])]
    return Grants.of(permissions, categories[:1])


class UnbackedProgram(NamedTuple):
    """A program that may do more than its maker."""

    organization_id: str
    name: str
    row: Application | ApiKey
    missing: Sequence[Permission]
    """The rights that the maker no longer has."""


def unbacked_programs(organization_ids: Sequence[str]) -> list[UnbackedProgram]:
    """Return the programs that may do more than their makers; three statements.

    Programs without a known maker are older than this rule, and aren't listed.
    """
    condition = Q(organization_id__in=organization_ids, maker__isnull=False)
    usable = Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=Now()))
    programs: list[Application | ApiKey] = [
        *Application.objects.filter(condition).order_by("organization_id", "name", "pk"),
        *ApiKey.objects.filter(condition, usable).order_by("organization_id", "name", "pk"),
    ]
    if not programs:
        return []
    rights_by_maker = _rights_of_makers({program.maker for program in programs if program.maker})
    unbacked = []
    for program in programs:
        held_by_maker = rights_by_maker.get((program.maker, program.organization_id), frozenset())
        held_by_maker |= rights_by_maker.get((program.maker, None), frozenset())
        lacking = [right for right in Permission if right in rights_of(program) - held_by_maker]
        if lacking:
            unbacked.append(
                UnbackedProgram(program.organization_id, program.name, program, lacking)
            )
    return unbacked


def _rights_of_makers(
    people: set[UUID],
) -> dict[tuple[UUID | None, str | None], frozenset[Permission]]:
    """Return people's rights by person and organization; superusers' rights have None for it."""
    active = Q(is_active=True, is_staff=True, person__in=people)
    roles = Membership.objects.filter(user__in=User.objects.filter(active)).values_list(
        "user__person", "organization_id", "role", "user__is_superuser"
    )
    rights: dict[tuple[UUID | None, str | None], frozenset[Permission]] = {
        (person, organization_id): PERMISSIONS.get(role, frozenset())
        for person, organization_id, role, _ in roles
    }
    superusers = User.objects.filter(active, is_superuser=True).values_list("person", flat=True)
    return rights | {(person, None): frozenset(Permission) for person in superusers}
