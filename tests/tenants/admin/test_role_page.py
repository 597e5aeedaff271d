"""The page "What roles may do" and the table of the documents, made from the table of checks."""

from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from rme.tenants.admin import role_page
from rme.tenants.models import Invitation, Membership, User
from rme.tenants.roles import PERMISSIONS, Permission, Role
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
def test_everybody_sees_the_page_with_the_own_role_marked(org, role):
    client = person("p", org, role)
    shown = client.get(reverse("roles"))
    assert {each.name: each.own for each in shown.context["roles"] if each.own} == {
        Role(role).label.partition(":")[0]: [org.name]
    }
    assert [row.text for row in shown.context["rows"]] == [row.text for row in role_page.rows()]


@pytest.mark.django_db
def test_a_person_of_30_organizations_costs_no_more_statements_than_one_of_one(org):
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
    assert counts == [4, 4]


@pytest.mark.django_db
def test_memberships_and_invitations_lead_there(org):
    owner = person("o", org, Role.OWNER)
    for model in (Membership, Invitation):
        for name in ("changelist", "add"):
            shown = owner.get(page(model, name), follow=True).content.decode()
            assert f'href="{reverse("roles")}"' in shown


@pytest.mark.django_db
def test_a_stranger_is_led_to_log_in(client):
    assert client.get(reverse("roles"))["Location"].startswith("/admin/login/")
