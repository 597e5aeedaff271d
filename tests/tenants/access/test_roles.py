"""Roles are sets of permissions; no role grants more than its own."""

import importlib

import pytest
from django.apps import apps

from rme.tenants.access import roles
from rme.tenants.access.roles import PERMISSIONS, Permission, Role, grantable, may
from rme.tenants.models import Membership, User
from tests import factories

pytestmark = pytest.mark.django_db
migration = importlib.import_module("rme.tenants.migrations.0006_editors_are_operators")


def member(org, role, **fields):
    user = User.objects.create_user(f"{role}-{org.pk}", is_staff=True, **fields)
    Membership.objects.create(user=user, organization=org, role=role)
    return user


def test_every_role_has_permissions_but_none_for_the_deployment():
    assert set(PERMISSIONS) == set(Role.values)
    assert all(PERMISSIONS.values())
    assert [role for role, held in PERMISSIONS.items() if Permission.DEPLOYMENT in held] == []


def test_owners_hold_all_permissions_and_only_they_grant_roles():
    assert set().union(*PERMISSIONS.values()) == PERMISSIONS[Role.OWNER]
    assert [r for r, held in PERMISSIONS.items() if Permission.GRANT_ROLES in held] == [Role.OWNER]


@pytest.mark.parametrize("role", Role.values)
def test_role_applies_only_in_its_organization(org, role):
    other = factories.organization("other")
    user = member(org, role)
    assert {each for each in Permission if may(user, org.pk, each)} == PERMISSIONS[role]
    assert {each for each in Permission if may(user, other.pk, each)} == set()


@pytest.mark.parametrize("fields", [{"is_active": False}, {"is_staff": False}])
def test_account_that_may_not_log_in_has_no_permissions(org, fields):
    user = member(org, Role.OWNER)
    User.objects.filter(pk=user.pk).update(**fields)
    assert not may(User.objects.get(pk=user.pk), org.pk, Permission.SEE_MESSAGES)


def test_superusers_may_do_everything(org):
    assert may(User.objects.create_superuser("root"), org.pk, Permission.DEPLOYMENT)


@pytest.mark.parametrize("role", Role.values)
def test_only_owners_grant(org, role):
    other = factories.organization("other")
    user = member(org, role)
    assert grantable(user, org.pk) == (list(Role.values) if role == Role.OWNER else [])
    assert grantable(user, other.pk) == []


def test_nobody_grants_more_than_their_role(org, monkeypatch):
    trusted = PERMISSIONS[Role.SUPPORT] | {Permission.GRANT_ROLES}
    monkeypatch.setattr(roles, "PERMISSIONS", {**PERMISSIONS, Role.SUPPORT: trusted})
    assert grantable(member(org, Role.SUPPORT), org.pk) == [Role.SUPPORT]


def test_unknown_role_of_a_newer_release_has_no_permissions(org):
    assert not may(member(org, "NEWER"), org.pk, Permission.SEE_MESSAGES)


def test_migration_changes_editors_to_operators_only(org):
    for role in ("EDITOR", "OWNER", "VIEWER", "SUPPORT"):
        member(org, role)
    stored = Membership.objects.order_by("id").values_list("role", flat=True)
    migration.rename(apps, "EDITOR", "OPERATOR")
    assert list(stored) == ["OPERATOR", "OWNER", "VIEWER", "SUPPORT"]
