"""The page "What roles may do" and the table of the documents, made from the table of checks."""

from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from rme.tenants.access.roles import PERMISSIONS, Permission, Role
from rme.tenants.admin import role_page
from rme.tenants.models import Invitation, Membership, User
from tests import factories
from tests.tenants.admin.scene import page, person

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "console.md"


def test_the_rows_are_the_table_of_permissions():
    names = {role.label.partition(":")[0]: role for role in Role}
    found = {row.text: {names[name] for name, may in row.cells if may} for row in role_page.rows()}
    assert found == {
        permission.label: {role for role in Role if permission in PERMISSIONS[role]}
        for permission in Permission
        if permission is not Permission.DEPLOYMENT
    }


def test_the_guide_has_the_same_table():
    names = [column.name for column in role_page.columns()]
    table = [f"| may | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for row in role_page.rows():
        marks = ["yes" if may else "–" for _, may in row.cells]
        table.append(f"| {row.text} | {' | '.join(marks)} |")
    assert "\n".join(table) in GUIDE.read_text()


@pytest.mark.django_db
@pytest.mark.parametrize("role", Role.values)
def test_page_marks_the_persons_own_role(org, role):
    client = person("p", org, role)
    shown = client.get(reverse("roles"))
    assert {each.name: each.own for each in shown.context["roles"] if each.own} == {
        Role(role).label.partition(":")[0]: [org.name]
    }
    assert [row.text for row in shown.context["rows"]] == [row.text for row in role_page.rows()]


@pytest.mark.django_db
def test_page_needs_the_same_statements_for_30_organizations_as_for_1(org):
    client = person("p", org, Role.OWNER)
    client.get(reverse("roles"))
    counts = []
    for names in ([], [f"o{i}" for i in range(30)]):
        for name in names:
            Membership.objects.create(
                user=User.objects.get(), organization=factories.organization(name), role="VIEWER"
            )
        with CaptureQueriesContext(connection) as captured:
            assert client.get(reverse("roles")).status_code == 200
        counts.append(len(captured))
    assert counts == [5, 5]


@pytest.mark.django_db
def test_memberships_and_invitations_link_to_the_page(org):
    owner = person("o", org, Role.OWNER)
    for model in (Membership, Invitation):
        for name in ("changelist", "add"):
            shown = owner.get(page(model, name), follow=True).content.decode()
            assert f'href="{reverse("roles")}"' in shown


@pytest.mark.django_db
def test_stranger_is_redirected_to_log_in(client):
    assert client.get(reverse("roles"))["Location"].startswith("/admin/login/")
