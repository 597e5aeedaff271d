"""The team: roles change, accesses end and invitations are withdrawn on pages of the console."""

import re
from functools import partial

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from rme.tenants.models import Invitation, Membership, User
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.tenants.admin.scene import person
from tests.threads import during

pytestmark = pytest.mark.django_db
Role = Membership.Role


@pytest.fixture
def owner(org):
    return person("olga", org, Role.OWNER)


def member(org, name="sam", role=Role.VIEWER, **fields):
    user = User.objects.create(username=name, is_staff=True, **fields)
    return Membership.objects.create(organization=org, user=user, role=role)


def last():
    """Return the newest entry: who, what, and its values in words."""
    line = audited.entries()[-1]
    return line.entry.actor_name, line.entry.action, line.lines


def test_owner_changes_a_role(owner, org):
    row = member(org, first_name="Sam", last_name="Lee")
    path = url("member_role", row.pk)
    assert "Change the role of Sam Lee" in owner.get(path).content.decode()
    shown = owner.post(path, {"role": "SUPPORT"}, follow=True)
    assert shown.redirect_chain == [(url("team"), 302)]
    assert "Sam Lee has the role Support now." in shown.content.decode()
    row.refresh_from_db()
    assert (row.role, last()) == ("SUPPORT", ("olga", "ROLE_CHANGED", ["role: VIEWER → SUPPORT"]))


def test_unchanged_role_leaves_no_entry(owner, org):
    row, before = member(org), len(audited.entries())
    owner.post(url("member_role", row.pk), {"role": "VIEWER"})
    assert len(audited.entries()) == before


def test_unknown_role_is_refused(owner, org):
    row = member(org)
    answer = owner.post(url("member_role", row.pk), {"role": "KING"})
    assert answer.status_code == 200
    assert answer.context["form"].errors
    row.refresh_from_db()
    assert row.role == "VIEWER"


def test_owner_removes_a_member_by_name(owner, org):
    row = member(org, first_name="Sam", last_name="Lee")
    path = url("member_remove", row.pk)
    question = owner.get(path).content.decode()
    assert "Remove Sam Lee from Acme?" in question
    assert Membership.objects.filter(pk=row.pk).exists()
    assert owner.post(path)["Location"] == url("team")
    assert not Membership.objects.filter(pk=row.pk).exists()
    assert last()[:2] == ("olga", "ROLE_TAKEN")
    assert User.objects.filter(username="sam").exists()


def test_owner_withdraws_an_invitation(owner, org):
    owner.post(url("team"), {"email": "new@person.example", "role": "VIEWER"})
    row = Invitation.objects.get()
    assert last()[:2] == ("olga", "INVITED")
    path = url("withdraw_invitation", row.pk)
    assert "Withdraw the invitation of new@person.example?" in owner.get(path).content.decode()
    assert owner.post(path)["Location"] == url("team")
    assert not Invitation.objects.exists()
    assert last()[:2] == ("olga", "WITHDRAWN")
    assert "digest: … → –" in last()[2]


def test_address_that_is_too_long_for_a_user_name_is_refused_on_the_team_page(owner, org):
    address = f"sam@{'a' * 63}.{'b' * 63}.{'c' * 30}.com"
    answer = owner.post(url("team"), {"email": address, "role": "VIEWER"})
    assert "at most 150 characters (it has 166)" in answer.content.decode()
    assert not Invitation.objects.exists()


def test_second_invitation_of_a_person_is_refused_on_the_team_page(owner, org):
    form = {"email": "new@person.example", "role": "VIEWER"}
    owner.post(url("team"), form)
    answer = owner.post(url("team"), form | {"email": "New@Person.example"})
    assert answer.status_code == 200
    assert "An invitation waits for this person." in answer.content.decode()
    assert re.search(r'<dialog id="invite"[^>]* open', answer.content.decode())
    assert Invitation.objects.count() == 1


@pytest.mark.parametrize(
    ("route", "form"), [("member_role", {"role": "VIEWER"}), ("member_remove", {})]
)
def test_only_owner_stays_an_owner(owner, org, route, form):
    row = Membership.objects.get()
    member(org, "former", Role.OWNER, is_active=False)
    answer = owner.post(url(route, row.pk), form)
    assert "olga is the only owner. Make somebody else an owner first." in answer.content.decode()
    row.refresh_from_db()
    assert row.role == "OWNER"
    member(org, "other", Role.OWNER)
    assert owner.post(url(route, row.pk), form)["Location"] == "/admin/"
    assert not Membership.objects.filter(user__username="olga", role="OWNER").exists()


@pytest.mark.django_db(transaction=True)
def test_two_owners_who_remove_each_other_at_once_leave_one(org):
    clients = {name: person(name, org, Role.OWNER) for name in ("ann", "bob")}
    rows = {row.user.username: row for row in Membership.objects.select_related("user")}

    removals = [
        partial(clients[name].post, url("member_remove", rows[other].pk))
        for name, other in (("ann", "bob"), ("bob", "ann"))
    ]
    (second,) = during(*removals)
    assert "ann is the only owner." in second.content.decode()
    assert [row.user.username for row in Membership.objects.filter(role="OWNER")] == ["ann"]


def test_row_offers_to_act_only_as_people_whose_rights_the_person_has(owner, org):
    other = factories.organization("other")
    for name in ("sam", "both"):
        member(org, name)
    Membership.objects.create(
        user=User.objects.get(username="both"), organization=other, role=Role.VIEWER
    )
    member(org, "root", is_superuser=True)
    shown = owner.get(url("team")).content.decode()
    names = set(re.findall(r'aria-label="Act as (\w+)"', shown))
    users = {user.username: user.pk for user in User.objects.all()}
    reachable = {
        name
        for name, pk in users.items()
        if owner.get(reverse("acting_begin", args=[pk])).status_code != 404
    }
    assert names == reachable == {"sam"}


def test_team_takes_the_same_statements_for_many_members(owner, org):
    counts = []
    for number in range(3):
        member(org, f"person{number}")
        owner.get(url("team"))
        with CaptureQueriesContext(connection) as captured:
            owner.get(url("team"))
        counts.append(len(captured))
    assert len(set(counts)) == 1


def test_team_page_leads_to_no_page_of_a_model(owner, org):
    member(org)
    owner.post(url("team"), {"email": "new@person.example", "role": "VIEWER"})
    shown = owner.get(url("team")).content.decode()
    content = shown.partition("<main ")[2].partition("</main>")[0]
    assert "Withdraw" in content
    assert re.findall(r'(?:href|action)="(/admin/tenants/[^"]*)"', content) == []
