"""Requests that began before the owner took an unproven account over, and end after it."""

import pytest
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount

from rme.tenants.access import proven_addresses
from rme.tenants.models import User
from tests.tenants.access.passkeys import ADD, Passkey
from tests.tenants.access.scene import PASSWORD, browser, code_of, is_in, log_in, member
from tests.tenants.access.test_single_sign_on import back_from, provider
from tests.threads import during

pytestmark = pytest.mark.django_db(transaction=True)
TOTP = "/admin/account/2fa/totp/activate/"
NEW = {
    "old_password": PASSWORD,
    "new_password1": "a word of the attacker",
    "new_password2": "a word of the attacker",
}


@pytest.fixture
def attacker(org):
    member(org)
    client = browser()
    log_in(client)
    return client


def taken_over(client):
    """Take the account over, as a sign-on of its address's owner does."""
    request = client.get("/admin/account/2fa/").wsgi_request
    return lambda: proven_addresses.take_over(request, User.objects.get(), "a test")


def test_an_app_is_not_added_to_an_account_that_was_taken_over(attacker):
    secret = attacker.get(TOTP).context["form"].secret
    code = {"code": code_of(secret)}
    (answer,) = during(taken_over(attacker), lambda: attacker.post(TOTP, code))
    assert answer["Location"].startswith("/admin/login/")
    assert (Authenticator.objects.count(), is_in(attacker)) == (0, False)


def test_a_passkey_is_not_added_to_an_account_that_was_taken_over(attacker):
    passkey = Passkey(User.objects.get())
    credential = passkey.new(attacker)
    (answer,) = during(taken_over(attacker), lambda: attacker.post(ADD, credential))
    assert answer["Location"].startswith("/admin/login/")
    assert not Authenticator.objects.exists()


def test_a_password_is_not_set_for_an_account_that_was_taken_over(attacker):
    page = "/admin/password_change/"
    (answer,) = during(taken_over(attacker), lambda: attacker.post(page, NEW))
    assert answer["Location"].startswith("/admin/login/")
    user = User.objects.get()
    assert (user.has_usable_password(), user.proven_email) == (False, "sam@example.com")


def test_sign_ons_at_once_are_all_in_and_the_attacker_is_out(attacker, settings):
    with provider(settings):
        owners = [browser(), browser()]
        paths = [back_from(owner) for owner in owners]
        during(
            lambda: User.objects.select_for_update().get(),
            *(
                lambda owner=owner, path=path: owner.get(path)
                for owner, path in zip(owners, paths, strict=True)
            ),
        )
    assert ([is_in(owner) for owner in owners], is_in(attacker)) == ([True, True], False)
    assert SocialAccount.objects.count() == 1


def test_sign_on_does_not_undo_what_another_changes_meanwhile(org, settings):
    member(org)
    with provider(settings):
        owner = browser()
        path = back_from(owner)
        during(lambda: User.objects.update(is_staff=False), lambda: owner.get(path))
    assert (User.objects.get().is_staff, is_in(owner)) == (False, False)
