"""The page that says what each role may do, made from the table that every check reads."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext

from rme.tenants.access.roles import PERMISSIONS, Permission, Role
from rme.tenants.models import User


@dataclass(frozen=True, slots=True)
class RoleColumn:
    """A role, and the names of the organizations in which the person has it."""

    name: str
    text: str
    own: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class PermissionRow:
    """A permission in words: each role's name, and whether it may."""

    text: str
    cells: Sequence[tuple[str, bool]]


def columns(memberships: Sequence[tuple[str, str]] = ()) -> list[RoleColumn]:
    """Return the roles; `memberships` are a person's roles, each with its organization's name."""
    return [
        RoleColumn(name, text, [organization for role, organization in memberships if role == code])
        for code, label in Role.choices
        for name, _, text in [label.partition(": ")]
    ]


def rows() -> list[PermissionRow]:
    """Return the permissions that a role can give, in the order of their table."""
    granted = frozenset().union(*PERMISSIONS.values())
    return [
        PermissionRow(
            str(each.label),
            [(label.partition(":")[0], each in PERMISSIONS[code]) for code, label in Role.choices],
        )
        for each in Permission
        if each in granted
    ]


def show(request: HttpRequest) -> HttpResponse:
    """Return the page, with the person's own roles marked; one statement of its own."""
    user = request.user
    assert isinstance(user, User)  # admin_view requires a logged-in user
    rows_of_user = user.memberships.order_by("organization__name")
    memberships = list(rows_of_user.values_list("role", "organization__name"))
    context = {
        **admin.site.each_context(request),
        "title": gettext("What roles may do"),
        "roles": columns(memberships),
        "rows": rows(),
    }
    return render(request, "admin/rme/roles.html", context)
