"""Access in a real browser: invitation, authenticator app, passkey, single sign-on, lock-out."""

import time

import pytest
from playwright.sync_api import expect

from rme.tenants.models import Membership, Organization, User
from tests import audited, factories
from tests.browser import tabs
from tests.browser.axe import scrolls_sideways, violations
from tests.tenants.access.scene import PASSWORD, code_of, member, with_totp
from tests.tenants.access.test_single_sign_on import provider

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


@pytest.fixture
def tab(chromium, live_server, transactional_db):
    with tabs.opened(chromium, allows=tabs.LOAD_FAILED, viewport=tabs.PHONE) as tab:
        yield tab


def log_in(journey, live_server, name, password=PASSWORD):
    journey.tab.goto(f"{live_server.url}/admin/login/")
    journey.log_in(name, password)


def log_out(tab):
    tab.context.clear_cookies()


def fits(tab):
    """Check that a page can be read on a phone without scrolling sideways."""
    assert not scrolls_sideways(tab)


def passkey_device(tab):
    """Give a tab a virtual authenticator that checks its owner."""
    devtools = tab.context.new_cdp_session(tab)
    devtools.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True,
               "hasUserVerification": True, "isUserVerified": True,
               "automaticPresenceSimulation": True}  # fmt: skip
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})


def invite(journey, live_server, role, email="sam@example.com"):
    """Invite a person from the team's page; return the link that the page shows once."""
    tab = journey.tab
    log_in(journey, live_server, "olga")
    journey.click("button", "Menu")
    journey.click("link", "Team")
    fits(tab)
    journey.click("button", "Invite person")
    journey.fill("Email", email)
    journey.choose("Role", str(role.label))
    fits(tab)
    journey.click("button", "Send invitation")
    link = tab.locator("code").inner_text()
    log_out(tab)
    return link


def test_invited_person_makes_a_passkey_and_logs_in_with_it(tab, journey, live_server, settings):
    """The passkey is both factors, which the organization requires."""
    settings.BASE_URL = live_server.url
    passkey_device(tab)
    org, other = factories.organization(), factories.organization("other")
    member(org, "OWNER", "olga")
    link = invite(journey, live_server, Membership.Role.SUPPORT)
    Organization.objects.filter(pk=org.pk).update(second_factor_required=True)
    tab.goto(link)
    fits(tab)
    assert violations(tab) == []
    journey.fill("First name", "Sam")
    journey.fill("Last name", "Lee")
    journey.click("button", "Create a passkey")
    expect(tab.get_by_role("heading", name="Recovery Codes")).to_be_visible()
    fits(tab)
    added = [text for _, action, text in audited.summaries() if action == "FACTOR_ADDED"]
    assert added == ["passkey or security key", "recovery codes"]
    log_out(tab)
    tab.goto(f"{live_server.url}/admin/login/")
    journey.click("button", "Use a passkey")
    expect(tab).to_have_url(f"{live_server.url}/admin/")
    assert journey.count <= 10

    for organization, expected in ((org, 200), (other, 404)):
        address = f"{live_server.url}/admin/console/{organization.pk}/messages/"
        assert tab.request.get(address).status == expected
    user = User.objects.get(username="sam@example.com")
    assert (user.get_full_name(), user.has_usable_password()) == ("Sam Lee", False)
    assert user.memberships.get().role == "SUPPORT"


def test_invited_person_sets_a_password_and_an_authenticator_app(
    tab, journey, live_server, settings
):
    settings.BASE_URL = live_server.url
    org = factories.organization()
    member(org, "OWNER", "olga")
    link = invite(journey, live_server, Membership.Role.SUPPORT)
    Organization.objects.filter(pk=org.pk).update(second_factor_required=True)
    tab.goto(link)
    for label, text in (("First name", "Sam"), ("Last name", "Lee")):
        journey.fill(label, text)
    for name in ("password1", "password2"):
        journey.fill(tab.locator(f"input[name={name}]"), PASSWORD)
    journey.click("button", "Accept with password")
    expect(tab.get_by_text("You need a second factor here")).to_be_visible()
    fits(tab)
    secret = tab.locator("#authenticator_secret").input_value()
    used = code_of(secret)
    journey.fill(tab.locator("input[name=code]"), used)
    journey.click("button", "Activate app")
    expect(tab.get_by_role("heading", name="Recovery Codes")).to_be_visible()
    fits(tab)
    log_out(tab)

    log_in(journey, live_server, "sam@example.com")
    while code_of(secret) == used:  # a code counts once: the app shows the next one within 30 s
        time.sleep(0.2)
    journey.fill(tab.locator("input[name=code]"), code_of(secret))
    fits(tab)
    journey.click("button", "Log in")
    expect(tab).to_have_url(f"{live_server.url}/admin/")
    assert journey.count <= 15


def test_a_passkey_logs_in_without_a_password(tab, journey, live_server):
    user = member(factories.organization())
    passkey_device(tab)
    log_in(journey, live_server, "sam")
    expect(tab).to_have_url(f"{live_server.url}/admin/")
    tab.goto(f"{live_server.url}/admin/account/2fa/")
    journey.click("link", "Add")
    fits(tab)
    journey.fill(tab.locator("input[name=name]"), "laptop")
    journey.click("button", "Add")
    expect(tab.get_by_role("heading", name="Recovery Codes")).to_be_visible()
    log_out(tab)
    tab.goto(f"{live_server.url}/admin/login/")
    journey.click("button", "Use a passkey")
    expect(tab).to_have_url(f"{live_server.url}/admin/")
    tab.goto(f"{live_server.url}/admin/account/sessions/")
    expect(tab.get_by_text("127.0.0.1").first).to_be_visible()
    fits(tab)
    assert user.authenticator_set.filter(type="webauthn").count() == 1
    assert journey.count <= 4


def test_single_sign_on_goes_through_the_provider_and_the_second_factor(
    tab, journey, live_server, settings
):
    user = member(factories.organization())
    callback = f"{live_server.url}/admin/account/oidc/sso/login/callback/"
    with provider(settings, callback=callback) as issuer:
        directives = settings.CONTENT_SECURITY_POLICY["DIRECTIVES"]
        actions = [*directives["form-action"], issuer]  # as a deployment with OIDC_URL has it
        settings.CONTENT_SECURITY_POLICY = {"DIRECTIVES": {**directives, "form-action": actions}}
        for protected in (False, True):
            tab.goto(f"{live_server.url}/admin/login/?next=/admin/messaging/message/")
            journey.click("button", "Continue with Acme ID")
            if protected:
                fits(tab)
                journey.fill(tab.locator("input[name=code]"), code_of())
                journey.click("button", "Log in")
            expect(tab).to_have_url(
                f"{live_server.url}/admin/console/{user.memberships.get().organization_id}/messages/"
            )
            log_out(tab)
            if not protected:
                with_totp(user)
    assert journey.count <= 4


def test_password_guesses_lock_the_account_out(tab, journey, live_server):
    member(factories.organization())
    for _ in range(5):
        log_in(journey, live_server, "sam", "wrong")
        expect(tab.get_by_text("Please enter the correct username and password")).to_be_visible()
        fits(tab)
    log_in(journey, live_server, "sam")
    expect(tab.get_by_role("heading", name="Too many attempts to log in")).to_be_visible()
    assert User.objects.get().last_login is None
