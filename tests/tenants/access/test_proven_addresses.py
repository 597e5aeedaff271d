"""An account whose address nobody has proven is never joined by the address's owner as it is."""

import re

import pytest
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.core import mail

from rme.tenants.access import invitations, proven_addresses
from rme.tenants.access.tasks import send_password_reset
from rme.tenants.models import Invitation, Membership, User
from tests import audited, factories
from tests.tenants.access.scene import (
    CODE,
    PASSWORD,
    browser,
    code_of,
    is_in,
    links,
    log_in,
    member,
    with_totp,
)
from tests.tenants.access.test_forgotten_password import NEW as NEW_PASSWORD
from tests.tenants.access.test_forgotten_password import follow
from tests.tenants.access.test_invitations import NEW, invite, path_of
from tests.tenants.access.test_single_sign_on import provider, sign_on

pytestmark = pytest.mark.django_db
CEO = "ceo@victim.example"
THEIRS = {**NEW, "password1": "owner of the box", "password2": "owner of the box"}


@pytest.fixture
def attacker(org):
    """Return the browser of an owner who accepts an invitation that they made for the CEO."""
    owner, client = browser(), browser("198.51.100.9")
    owner.force_login(member(org, "OWNER", "olga"))
    client.post(path_of(invite(owner, org, email=CEO)), NEW)
    assert is_in(client)
    return client


def ceo():
    return User.objects.get(username=CEO)


def invite_by_mail(settings, org, email=CEO, inviter="olga2"):
    """Return the path of a link that went out by mail alone."""
    settings.MAIL_ENABLED = True
    author = member(org, "OWNER", inviter)
    row = Invitation(organization=org, email=email, role="OWNER", invited_by=author)
    return links(invitations.create(row))[0]


def passwords_that_work():
    words = (NEW["password1"], THEIRS["password1"], NEW_PASSWORD["password1"])
    return [word for word in words if ceo().check_password(word)]


def test_sign_on_removes_credentials_of_an_unproven_account(org, settings, attacker):
    user = with_totp(ceo())
    SocialAccount.objects.create(user=user, provider="sso", uid="attacker")
    person = user.person
    assert (passwords_that_work(), proven_addresses.is_proven(user)) == ([NEW["password1"]], False)
    with provider(settings, email=CEO):
        owner = browser()
        assert sign_on(owner)["Location"] == "/admin/"
        assert is_in(owner)
    user = ceo()
    assert not is_in(attacker)
    assert (user.has_usable_password(), user.proven_email, user.person == person) == (
        False, CEO, False,
    )  # fmt: skip
    assert Authenticator.objects.filter(user=user).count() == 0
    assert list(SocialAccount.objects.values_list("user_id", flat=True)) == [user.pk]
    assert not SocialAccount.objects.filter(uid="attacker").exists()
    again = browser("198.51.100.9")
    assert log_in(again, CEO, NEW["password1"]).status_code == 200
    (line,) = audited.summaries(action="CREDENTIALS_REMOVED")
    assert line[0] == CEO

    other = factories.organization("victim")
    Membership.objects.create(organization=other, user=user, role="OWNER")
    assert not is_in(attacker)


def test_log_in_waiting_for_its_code_ends_too(org, settings, attacker):
    with_totp(ceo())
    waiting = browser("198.51.100.9")
    assert log_in(waiting, CEO, NEW["password1"])["Location"] == CODE
    with provider(settings, email=CEO):
        sign_on(browser())
    waiting.post(CODE, {"code": code_of()})
    assert not is_in(waiting)


def test_a_proven_account_keeps_its_password_and_factors(org, settings):
    user = member(org, proven_email="SAM@example.com")
    with_totp(user)
    with provider(settings):
        assert sign_on(browser())["Location"] == CODE
    assert User.objects.get().check_password(PASSWORD)
    assert Authenticator.objects.count() == 2


def test_a_connection_of_a_former_release_is_proven_at_the_next_sign_on(org, settings):
    with provider(settings):
        sign_on_first = browser()
        user = member(org)
        sign_on(sign_on_first)
        with_totp(user)
        User.objects.filter(pk=user.pk).update(proven_email="")
        User.objects.get().set_password(PASSWORD)
        assert sign_on(browser())["Location"] == "/admin/"
    user = User.objects.get()
    assert (user.proven_email, user.has_usable_password()) == ("sam@example.com", False)
    assert (Authenticator.objects.count(), SocialAccount.objects.count()) == (0, 1)


def test_a_changed_address_is_unproven(org, settings):
    user = member(org, proven_email="sam@example.com")
    User.objects.filter(pk=user.pk).update(email=CEO)
    user = User.objects.get(pk=user.pk)
    assert (user.email, proven_addresses.is_proven(user)) == (CEO, False)
    with provider(settings, email=CEO):
        sign_on(browser())
    assert not User.objects.get(pk=user.pk).has_usable_password()


@pytest.mark.parametrize("spelling", ["ſam@example.com", "sam@exampıe.com", "sam@example.com"])
def test_lookalike_address_is_another_address(org, settings, spelling):
    member(org, email=spelling.replace("ſ", "s").replace("ı", "i"))
    found = proven_addresses.with_address(spelling)
    assert len(found) == (1 if spelling.isascii() else 0)


def test_a_mailed_invitation_proves_the_address_of_a_new_person(org, settings):
    link = invite_by_mail(settings, org)
    browser().post(link, NEW)
    assert proven_addresses.is_proven(ceo())


def test_invitation_link_seen_by_the_inviter_proves_no_address(attacker):
    assert not proven_addresses.is_proven(ceo())


def test_a_mailed_invitation_takes_an_unproven_account_over(org, settings, attacker):
    victim = factories.organization("victim")
    link, owner = invite_by_mail(settings, victim), browser()
    shown = owner.get(link)
    assert (shown.status_code, b"Nobody has confirmed this account" in shown.content) == (200, True)
    assert owner.post(link, THEIRS)["Location"] == "/admin/"
    assert (is_in(owner), is_in(attacker)) == (True, False)
    assert (passwords_that_work(), ceo().proven_email) == ([THEIRS["password1"]], CEO)
    assert set(ceo().memberships.values_list("organization_id", flat=True)) == {"acme", "victim"}


def test_session_of_an_unproven_account_needs_the_mail_and_a_new_password(org, settings, attacker):
    link = invite_by_mail(settings, factories.organization("victim"))
    assert b"Nobody has confirmed this account" in attacker.post(link, {}).content
    assert not ceo().memberships.filter(organization="victim").exists()
    attacker.post(link, THEIRS)  # who has the mail and the session is the owner
    assert (is_in(attacker), passwords_that_work()) == (True, [THEIRS["password1"]])


def test_a_mailbox_alone_does_not_pass_a_second_factor(org, settings, attacker):
    with_totp(ceo())
    link = invite_by_mail(settings, factories.organization("victim"))
    answer = browser().post(link, THEIRS)
    assert answer["Location"].startswith("/admin/login/?next=")
    assert attacker.post(link, THEIRS)["Location"].startswith("/admin/account/2fa/reauthenticate/")
    send_password_reset(CEO)
    (reset,) = [each for each in links(mail.outbox[-1].body) if "key" in each]
    client = browser()
    client.post(follow(reset, client), NEW_PASSWORD)
    assert (passwords_that_work(), ceo().proven_email) == ([NEW_PASSWORD["password1"]], "")
    assert Authenticator.objects.count() == 2


def test_a_new_password_by_mail_proves_the_address(org, settings, attacker):
    settings.MAIL_ENABLED = True
    user = ceo()
    SocialAccount.objects.create(user=user, provider="sso", uid="attacker")
    send_password_reset(CEO)
    (link,) = [each for each in links(mail.outbox[-1].body) if "key" in each]
    client = browser()
    client.post(follow(link, client), NEW_PASSWORD)
    assert (passwords_that_work(), ceo().proven_email) == ([NEW_PASSWORD["password1"]], CEO)
    assert (is_in(attacker), SocialAccount.objects.count()) == (False, 0)
    assert ceo().person != user.person
    assert log_in(client, CEO, NEW_PASSWORD["password1"]).status_code == 302


def test_mailed_invitation_link_is_not_shown_to_the_inviter(org, settings):
    settings.MAIL_ENABLED = True
    owner = browser()
    owner.force_login(member(org, "OWNER", "olga"))
    text = invite(owner, org, email=CEO).content.decode()
    assert re.findall(r"/admin/account/invitation/[\w-]+/", text) == []
    assert Invitation.objects.get().mailed
