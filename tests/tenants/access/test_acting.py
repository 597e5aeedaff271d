"""Acting as another user: who may, as whom, what is closed meanwhile, and what is recorded."""

import pytest
import time_machine
from django.urls import reverse

from messaging.models import WebhookEndpoint
from rme.tenants.models import ApiKey, AuditEntry, Invitation, Membership, User
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.tenants.access.scene import CODE, browser, code_of, log_in, member, with_totp
from tests.tenants.admin.scene import button, page

pytestmark = pytest.mark.django_db
END = reverse("acting_end")


def begin(client, user, reason="shows an empty list"):
    return client.post(reverse("acting_begin", args=[user.pk]), {"reason": reason})


def entered(name):
    """Return the browser of a person who has just logged in."""
    client = browser()
    assert log_in(client, name).status_code == 302
    return client


@pytest.fixture
def root(db):
    member(None, name="root", is_superuser=True)
    return entered("root")


@pytest.fixture
def sam(org):
    return member(org, "OPERATOR")


def seen_as(client):
    """Return whom the console's pages take a person for, and the banner's text."""
    answer = client.get("/admin/")
    return answer.context["request"].user.username, "c-acting" in answer.content.decode()


def test_a_superuser_acts_as_a_person_and_ends_it(root, org, sam):
    asked = root.get(reverse("acting_begin", args=[sam.pk]))
    assert "what you do is recorded with both names" in asked.content.decode()
    assert begin(root, sam, reason=" ").status_code == 200  # nothing without a reason
    assert seen_as(root) == ("root", False)
    assert begin(root, sam).status_code == 302
    assert seen_as(root) == ("sam", True)
    assert "(shows an empty list)" in root.get(url("contacts")).content.decode()
    assert root.get(page(User, "changelist")).status_code == 403  # sam is no superuser
    assert root.post(url("contact_new"), {"last_name": "L"})
    assert root.get(END).status_code == 405
    assert root.post(END).status_code == 302
    assert seen_as(root) == ("root", False)
    assert root.get(page(User, "changelist")).status_code == 200
    rows = AuditEntry.objects.order_by("pk").exclude(action="LOGGED_IN")
    names = ("actor_name", "acting_as_name", "action", "organization_id")
    assert list(rows.values_list(*names)) == [
        ("root", "", "ACTING_BEGUN", "acme"),
        ("root", "sam", "ADDED", "acme"),
        ("root", "", "ACTING_ENDED", "acme"),
    ]
    begun = audited.entries(action="ACTING_BEGUN")[0]
    assert (begun.values.label, begun.values.reason) == ("sam", "shows an empty list")


def test_owners_act_as_people_of_their_organization_with_no_more_rights(org, sam):
    other = factories.organization("other")
    member(org, "OWNER", "olga")
    people = {
        "sam": sam,
        "equal": member(org, "OWNER", "equal"),
        "elsewhere": member(other, "VIEWER", "elsewhere"),
        "both": member(org, "VIEWER", "both"),
        "none": member(None, name="none"),
        "program": member(org, "VIEWER", "program", is_staff=False),
        "inactive": member(org, "VIEWER", "inactive", is_active=False),
        "root": member(org, "VIEWER", "root", is_superuser=True),
    }
    Membership.objects.create(user=people["both"], organization=other, role="VIEWER")
    olga = entered("olga")
    found = {name: begin(olga, user).status_code for name, user in people.items() if
             olga.post(END)}  # fmt: skip
    refused = dict.fromkeys(people, 404)
    assert found == refused | {"sam": 302, "equal": 302}
    olga.post(END)
    assert begin(olga, User.objects.get(username="olga")).status_code == 404


@pytest.mark.parametrize("role", ["OPERATOR", "SUPPORT", "VIEWER", "DEVELOPER"])
def test_acting_needs_the_permission_to_grant_roles(org, sam, role):
    member(org, role, "other")
    assert begin(entered("other"), sam).status_code == 404
    assert browser().post(reverse("acting_begin", args=[sam.pk])).status_code == 302  # to log in


def test_superuser_cannot_act_as_superusers_or_unknown_people(root):
    other = member(None, name="second", is_superuser=True)
    assert begin(root, other).status_code == 404
    for key in (0, 10**9, 10**30):
        assert root.get(f"/admin/acting/begin/{key}/").status_code == 404


def test_acting_needs_a_fresh_second_factor_if_set_up(org, sam):
    user = with_totp(member(None, name="root", is_superuser=True))
    with time_machine.travel(1_900_000_000, tick=False):
        client = entered("root")
        client.post(CODE, {"code": code_of()})
    with time_machine.travel(1_900_000_400, tick=False):
        asked = begin(client, sam)
        proof = reverse("mfa_reauthenticate")
        assert asked["Location"].startswith(f"{proof}?next=")
        assert client.post(asked["Location"], {"code": code_of()}).status_code == 302
        assert begin(client, sam)["Location"] == "/admin/"
        assert seen_as(client) == ("sam", True)
    assert user.pk


def test_acting_needs_a_fresh_password_without_a_second_factor(org, sam):
    member(None, name="root", is_superuser=True)
    with time_machine.travel(1_900_000_000, tick=False):
        client = entered("root")
    with time_machine.travel(1_900_000_400, tick=False):
        asked = begin(client, sam)
    assert asked["Location"].startswith(reverse("account_reauthenticate"))


def test_acting_ends_after_half_an_hour(org, sam):
    member(None, name="root", is_superuser=True)
    with time_machine.travel(1_900_000_000, tick=False):
        client = entered("root")
        begin(client, sam)
    with time_machine.travel(1_900_001_799, tick=False):
        assert seen_as(client) == ("sam", True)
    with time_machine.travel(1_900_001_800, tick=False):
        assert client.get("/admin/")["Location"] == "/admin/"
        assert seen_as(client) == ("root", False)
    assert audited.summaries(action="ACTING_ENDED") == [("root", "ACTING_ENDED", "the time was up")]


def test_acting_ends_with_its_permission_or_the_log_out(org, sam):
    olga = member(org, "OWNER", "olga")
    client = entered("olga")
    begin(client, sam)
    Membership.objects.create(user=sam, organization=factories.organization("b"), role="OWNER")
    client.get("/admin/")
    assert seen_as(client) == ("olga", False)
    Membership.objects.filter(organization="b").delete()
    begin(client, sam)
    client.post("/admin/logout/")
    assert [text for *_, text in audited.summaries(action="ACTING_ENDED")] == [
        "it isn't allowed any more", "it isn't allowed any more",  # of both organizations
        "logged out",
    ]  # fmt: skip
    assert audited.summaries()[-1] == ("olga", "LOGGED_OUT", "")
    assert olga.pk


def test_sensitive_pages_are_closed_while_acting(root, org):
    owner = member(org, "OWNER", "olga")
    key = ApiKey.objects.create(organization=org, name="bot", public_id="x", digest="y")
    endpoint = WebhookEndpoint.objects.create(organization=org, url="https://x.example/", types=[])
    row = Membership.objects.get(user=owner)
    begin(root, owner)
    account = ("2fa/", "2fa/totp/activate/", "sessions/", "reauthenticate/", "password/reset/",
               "invitation/x/")  # fmt: skip
    closed = [f"/admin/account/{each}" for each in account] + [
        "/admin/password_change/",
        "/push-demo",
        reverse("acting_begin", args=[owner.pk]),  # never nested
        page(ApiKey, "add"),
        page(Membership, "add"),
        page(Invitation, "add"),
        url("new_webhook"),
        url("webhook_settings", endpoint.pk),
    ]
    assert {path: root.get(path).status_code for path in closed} == dict.fromkeys(closed, 403)
    hidden = [
        button(ApiKey, key, "rotate"),
        button(ApiKey, key, "secret"),
        url("webhook_settings", endpoint.pk),
        page(Membership, "delete", row.pk),
        page(Membership, "change", row.pk),
    ]
    found = {path: root.post(path, {"post": "yes", "role": "VIEWER"}).status_code
             for path in hidden}  # fmt: skip
    assert set(found.values()) <= {403, 404}
    row.refresh_from_db()
    assert (row.role, ApiKey.objects.count(), Membership.objects.count()) == ("OWNER", 1, 1)
    assert root.get(url("audit")).status_code == 200


def test_buttons_link_to_acting(root, org, sam):
    target = reverse("acting_begin", args=[sam.pk])
    row = Membership.objects.get(user=sam)
    assert root.get(button(User, sam, "act-as"))["Location"] == target
    assert root.get(button(Membership, row, "act-as"))["Location"] == target
    assert "Act as this person" in root.get(page(User, "change", sam.pk)).content.decode()
