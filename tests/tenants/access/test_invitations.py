"""Invitations: by who grants roles, into one organization, accepted once by the invited person."""

import json
import re
from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone

from rme.core.redis.connection import redis_client
from rme.tenants.access import invitations
from rme.tenants.models import Invitation, Membership, Organization, User
from tests import audited, factories
from tests.tenants.access import passkeys
from tests.tenants.access.passkeys import Passkey
from tests.tenants.access.scene import browser, is_in, links, log_in, member
from tests.tenants.admin.scene import page

pytestmark = pytest.mark.django_db
NEW = {
    "first_name": "Sam",
    "last_name": "Lee",
    "password1": "correct horse battery",
    "password2": "correct horse battery",
}
GONE = b"This invitation is not valid"


@pytest.fixture
def owner(org):
    client = browser()
    client.force_login(member(org, "OWNER", "olga"))
    return client


def invite(client, org, role="SUPPORT", email="sam@example.com"):
    form = {"organization": org.pk, "email": email, "role": role}
    return client.post(page(Invitation, "add"), form, follow=True)


def path_of(answer):
    """Return the path of the link that the page shows once."""
    (found,) = re.findall(r"/admin/account/invitation/[\w-]+/", answer.content.decode())
    return found


def test_address_that_is_too_long_for_a_user_name_is_refused(owner, org):
    address = f"sam@{'a' * 63}.{'b' * 63}.{'c' * 30}.com"
    shown = invite(owner, org, email=address)
    assert "at most 150 characters (it has 166)" in shown.content.decode()
    assert not Invitation.objects.exists()


def test_an_invited_person_sets_a_password_and_is_in(owner, org):
    shown = invite(owner, org)
    assert "no-store" in shown["Cache-Control"]
    link, client = path_of(shown), browser()
    assert b"Welcome to Acme" in client.get(link).content
    answer = client.post(link, NEW)
    assert (answer.status_code, answer["Location"]) == (302, "/admin/")
    assert is_in(client)
    user = User.objects.get(username="sam@example.com")
    assert (user.is_staff, user.is_superuser, user.email) == (True, False, "sam@example.com")
    assert list(user.memberships.values_list("organization_id", "role")) == [(org.pk, "SUPPORT")]
    assert log_in(browser(), "sam@example.com").status_code == 302


def made(client, link, passkey, **changed):
    """Return the form by which a browser accepts an invitation with a new passkey."""
    options = client.get(link).context["creation_options"]["publicKey"]
    names = {name: NEW[name] for name in ("first_name", "last_name")}
    return {**names, "credential": passkey.made(options, **changed)}


def test_invited_person_accepts_with_a_passkey_alone(owner, org):
    link, client, passkey = path_of(invite(owner, org)), browser(), Passkey()
    Organization.objects.update(second_factor_required=True)
    answer = client.post(link, made(client, link, passkey))
    assert (answer.status_code, answer["Location"]) == (302, "/admin/account/2fa/recovery-codes/")
    assert client.get(answer["Location"]).context["can_view_codes"]
    assert is_in(client)
    user = User.objects.get(username="sam@example.com")
    assert (user.get_full_name(), user.has_usable_password()) == ("Sam Lee", False)
    assert list(user.memberships.values_list("organization_id", "role")) == [(org.pk, "SUPPORT")]
    again = browser()
    again.post(passkeys.LOGIN, {"credential": json.dumps(passkey.answer(again))})
    assert is_in(again)
    added = [text for _, action, text in audited.summaries() if action == "FACTOR_ADDED"]
    assert added == ["passkey or security key", "recovery codes"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda client, link: made(client, link, Passkey(), flags=passkeys.PRESENT),
        lambda client, link: made(browser(), link, Passkey()),
        lambda client, link: made(client, link, Passkey(host="evil.example")),
        lambda client, link: {**NEW, "credential": "{}"},
        lambda client, link: {"credential": made(client, link, Passkey())["credential"]},
    ],
    ids=["owner not checked", "another's challenge", "another host", "no passkey", "no name"],
)
def test_improper_passkey_accepts_nothing(owner, org, spoil):
    link, client = path_of(invite(owner, org)), browser()
    client.get(link)
    assert client.post(link, spoil(client, link)).status_code == 200
    assert not User.objects.filter(username="sam@example.com").exists()
    assert Invitation.objects.get().accepted_at is None


def test_passkey_of_a_mailed_invitation_replaces_what_opened_the_account(owner, org, settings):
    settings.MAIL_ENABLED = True
    user = member(factories.organization("other"), "OWNER")
    row = Invitation(organization=org, email=user.email, role="VIEWER",
                     invited_by=User.objects.get(username="olga"))  # fmt: skip
    link, client = links(invitations.create(row))[0], browser()
    assert client.post(link, made(client, link, Passkey())).status_code == 302
    user.refresh_from_db()
    assert (user.has_usable_password(), user.proven_email) == (False, user.email)
    assert log_in(browser()).status_code == 200


def test_a_link_works_once(owner, org):
    link = path_of(invite(owner, org))
    browser().post(link, NEW)
    again = browser().post(link, {**NEW, "password1": "x" * 20, "password2": "x" * 20})
    assert (again.status_code, GONE in again.content) == (404, True)
    assert User.objects.get(username="sam@example.com").check_password(NEW["password1"])


def test_the_link_is_in_no_table_and_on_no_other_page(owner, org):
    token = path_of(invite(owner, org)).split("/")[-2]
    row = Invitation.objects.get()
    stored = [str(value) for value in Invitation.objects.values_list().get()]
    assert token not in "".join(stored)
    for url in (page(Invitation, "changelist"), page(Invitation, "change", row.pk)):
        text = owner.get(url).content.decode()
        assert (token in text, row.digest in text) == (False, False)


@pytest.mark.parametrize(
    "change",
    [
        lambda row: Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1)),
        lambda row: row.delete(),
        lambda row: Membership.objects.filter(user=row.invited_by).update(role="VIEWER"),
        lambda row: row.invited_by.delete(),
        lambda row: User.objects.filter(pk=row.invited_by_id).update(is_active=False),
    ],
    ids=["expired", "withdrawn", "author is no owner", "author deleted", "author inactive"],
)
def test_invalidated_invitation_is_not_accepted(owner, org, change):
    link = path_of(invite(owner, org))
    change(Invitation.objects.get())
    for answer in (browser().get(link), browser().post(link, NEW)):
        assert (answer.status_code, GONE in answer.content) == (404, True)
    assert not User.objects.filter(username="sam@example.com").exists()


def test_an_account_with_the_address_logs_in_and_accepts(owner, org):
    other = factories.organization("other")
    user = member(other, "OWNER")
    link, client = path_of(invite(owner, org)), browser()
    answer = client.post(link, NEW)
    assert answer["Location"].startswith("/admin/login/?next=")
    log_in(client)
    assert client.post(link).status_code == 302
    assert set(user.memberships.values_list("organization_id", "role")) == {
        (org.pk, "SUPPORT"),
        ("other", "OWNER"),
    }


def test_invitation_is_not_accepted_while_logged_in_as_someone_else(owner, org):
    link = path_of(invite(owner, org))
    assert b"You are logged in as olga" in owner.post(link, NEW).content
    member(org, "VIEWER", "sam")
    assert b"You are logged in as olga" in owner.post(link).content
    assert Invitation.objects.get().accepted_at is None


@pytest.mark.parametrize("role", sorted(set(Membership.Role.values) - {"OWNER"}))
def test_only_owners_invite(org, role):
    client = browser()
    client.force_login(member(org, role))
    assert invite(client, org, "VIEWER", "new@example.com").status_code == 403
    assert not Invitation.objects.exists()


def test_inviting_into_another_organization_is_rejected(owner):
    other = factories.organization("other")
    assert set(invite(owner, other).context["adminform"].form.errors) == {"organization"}


def test_second_invitation_of_a_person_is_rejected(owner, org):
    invite(owner, org)
    again = invite(owner, org, email="SAM@example.com").context["adminform"].form.errors
    assert set(again) == {"email"}
    assert set(invite(owner, org, email="olga@example.com").context["adminform"].form.errors) == {
        "email"
    }


def test_weak_and_different_passwords_are_refused(owner, org):
    link = path_of(invite(owner, org))
    for changed in ({"password1": "12345678", "password2": "12345678"}, {"password2": "other"}):
        assert browser().post(link, {**NEW, **changed}).status_code == 200
    assert not User.objects.filter(username="sam@example.com").exists()


def test_a_worker_sends_the_email(owner, org, settings, django_capture_on_commit_callbacks):
    settings.MAIL_ENABLED = True
    with django_capture_on_commit_callbacks(execute=True):
        shown = invite(owner, org)
    assert "An email with the invitation goes to sam@example.com." in shown.content.decode()
    assert (redis_client().llen("default"), mail.outbox) == (1, [])
    row = Invitation(organization=org, email="kim@example.com", role="VIEWER",
                     invited_by=User.objects.get(username="olga"))  # fmt: skip
    link = invitations.create(row)
    assert invitations.send(str(row.pk), link.split("/")[-2])
    (email,) = mail.outbox
    assert (email.to, link in email.body) == (["kim@example.com"], True)
    assert not invitations.send(str(row.pk), "another")
    assert len(mail.outbox) == 1


def test_users_are_added_by_invitation(db):
    root = browser_of_root()
    answer = root.get(page(User, "add"))
    assert (answer.status_code, answer["Location"]) == (302, page(Invitation, "add"))
    assert root.get(page(Invitation, "add")).status_code == 200


def test_owner_cannot_add_users(owner):
    assert owner.get(page(User, "add")).status_code == 403


def test_the_second_factor_comes_before_any_page(owner, org):
    Organization.objects.update(second_factor_required=True)
    link, client = path_of(invite(browser_of_root(), org)), browser()
    client.post(link, NEW)
    answer = client.get("/admin/")
    assert (answer.status_code, answer["Location"]) == (302, "/admin/account/2fa/totp/activate/")
    assert client.get(answer["Location"]).status_code == 200


def browser_of_root():
    client = browser()
    client.force_login(User.objects.create_superuser("root"))
    return client
